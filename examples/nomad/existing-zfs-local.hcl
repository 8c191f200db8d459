# A dataset of a node’s own ZFS (or a zvol: then with fs_type), behind a connection with the driver node-manual (../connections/node-manual.yaml).
# Its property mountpoint becomes "legacy".
#
#   nomad volume register existing-zfs-local.hcl

id          = "pool"
name        = "pool"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/pool"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

mount_options {
  fs_type = "zfs"
}

# Where it is.
topology_request {
  required {
    topology {
      segments {
        "org.democratic-csi.topology/node" = "client-1"
      }
    }
  }
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "zfs-local"
  "zfs_asset_name"     = "tank/data"
}
