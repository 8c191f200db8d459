# A volume that exists:
#
#   nomad volume register registered-volume.hcl
#
# `switchboard ctl create data --connection fast --size 1Gi --format nomad` makes a volume and prints such a file. External id and context are
# the plugin's own: they are copied from there, not made up.

id           = "data"
name         = "data"
type         = "csi"
plugin_id    = "org.switchboard.csi"
external_id  = "v:fast/data"
capacity_min = "1GiB"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

# Where it can be reached from.
topology_request {
  required {
    topology {
      segments {
        "org.democratic-csi.topology/node" = "client-1"
      }
    }
  }
}

parameters {
  "connection" = "fast"
}

context {
  "node_attach_driver" = "hostpath"
  "path"               = "/srv/fast/v/data"
  "provisioner_driver" = "local-hostpath"
}
