# An NFS share that was there before, behind a connection with the driver node-manual (../connections/node-manual.yaml).
#
#   nomad volume register existing-nfs.hcl
#
# The context says how nodes attach it; the file of the connection explains every kind. If the volume is declared there, it is called
# v:<connection>/<name> and has the context of the declaration.

id          = "media"
name        = "media"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/media"

capability {
  access_mode     = "multi-node-multi-writer"
  attachment_mode = "file-system"
}

mount_options {
  mount_flags = ["nfsvers=4.2"]
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "nfs"
  "server"             = "nas.example.org"
  "share"              = "/export/media"
}
