# A folder of an SMB share, behind a connection with the driver node-manual (../connections/node-manual.yaml).
#
#   nomad volume register existing-smb.hcl

id          = "scans"
name        = "scans"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/scans"

capability {
  access_mode     = "multi-node-multi-writer"
  attachment_mode = "file-system"
}

mount_options {
  mount_flags = ["vers=3.1.1", "uid=1000", "gid=1000"]
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "smb"
  "server"             = "nas.example.org"
  "share"              = "scans/inbox"
}

secrets {
  "username" = "scanner"
  "password" = "change this"
}
