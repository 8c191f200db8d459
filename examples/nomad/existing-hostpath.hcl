# A directory of one node, behind a connection with the driver node-manual (../connections/node-manual.yaml). A block device is told by its path,
# too: then with fs_type, or the attachment_mode block-device.
#
#   nomad volume register existing-hostpath.hcl

id          = "here"
name        = "here"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/here"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
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
  "node_attach_driver" = "hostpath"
  "path"               = "/srv/data"
}
