# A folder of a Lustre file system, behind a connection with the driver node-manual (../connections/node-manual.yaml).
#
#   nomad volume register existing-lustre.hcl

id          = "scratch"
name        = "scratch"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/scratch"

capability {
  access_mode     = "multi-node-multi-writer"
  attachment_mode = "file-system"
}

mount_options {
  mount_flags = ["flock"]
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "lustre"
  "server"             = "10.0.0.1@tcp:10.0.0.2@tcp"
  "share"              = "/scratch/csi"
}
