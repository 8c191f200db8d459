# A namespace over NVMe/TCP, with two ways to it, behind a connection with the driver node-manual (../connections/node-manual.yaml).
# Without a file system it gets one of this type.
#
#   nomad volume register existing-nvmeof.hcl

id          = "fast"
name        = "fast"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/fast"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

mount_options {
  fs_type = "xfs"
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "nvmeof"
  "transport"          = "tcp://10.0.0.1:4420"
  "transports"         = "tcp://10.0.1.1:4420"
  "nqn"                = "nqn.2003-01.org.example:fast"
  "nsid"               = "1"
}

secrets {
  # Only if the subsystem wants one.
  "dhchap-secret" = "DHHC-1:00:change this:"
}
