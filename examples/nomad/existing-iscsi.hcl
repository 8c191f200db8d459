# A disk over iSCSI, whose target wants a name and a password, behind a connection with the driver node-manual (../connections/node-manual.yaml).
# Without a file system it gets one of this type.
#
#   nomad volume register existing-iscsi.hcl

id          = "database"
name        = "database"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/database"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

mount_options {
  fs_type = "ext4"
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "iscsi"
  "portal"             = "10.0.0.1:3260"
  # Other ways to it, separated by commas.
  "portals"            = "10.0.1.1:3260"
  "iqn"                = "iqn.2003-01.org.example:database"
  "lun"                = "0"
}

secrets {
  "node-db.node.session.auth.authmethod" = "CHAP"
  "node-db.node.session.auth.username"   = "database"
  "node-db.node.session.auth.password"   = "change this"
}
