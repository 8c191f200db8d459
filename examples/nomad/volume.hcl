# A volume that Nomad makes:
#
#   nomad volume create volume.hcl
#
# The same file with a larger capacity_min, given to the same command, makes the volume larger.

id        = "data"
name      = "data"
type      = "csi"
plugin_id = "org.switchboard.csi"

capacity_min = "1GiB"

# What jobs may claim it for. One that wants it for writing and one that wants it for reading can have it at once.
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

capability {
  access_mode     = "single-node-reader-only"
  attachment_mode = "file-system"
}

parameters {
  connection = "fast"
}
