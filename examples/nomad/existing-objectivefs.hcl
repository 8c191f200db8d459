# An ObjectiveFS file system, behind a connection with the driver node-manual (../connections/node-manual.yaml).
# Nodes need mount.objectivefs.
#
#   nomad volume register existing-objectivefs.hcl

id          = "archive"
name        = "archive"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/archive"

capability {
  access_mode     = "multi-node-multi-writer"
  attachment_mode = "file-system"
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "objectivefs"
  "filesystem"         = "bucket/archive"
  "object_store"       = "minio://"
}

secrets {
  "env.OBJECTIVEFS_LICENSE"    = "change this"
  "env.OBJECTIVEFS_PASSPHRASE" = "change this"
  "env.ACCESS_KEY"             = "change this"
  "env.SECRET_KEY"             = "change this"
  "env.ENDPOINT"               = "http://minio.example.org:9000"
}
