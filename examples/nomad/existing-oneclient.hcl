# Spaces of Onedata, behind a connection with the driver node-manual (../connections/node-manual.yaml).
# Nodes need oneclient.
#
#   nomad volume register existing-oneclient.hcl

id          = "spaces"
name        = "spaces"
type        = "csi"
plugin_id   = "org.switchboard.csi"
external_id = "v:manual/spaces"

capability {
  access_mode     = "multi-node-multi-writer"
  attachment_mode = "file-system"
}

context {
  "provisioner_driver" = "node-manual"
  "node_attach_driver" = "oneclient"
  "server"             = "onedata.example.org"
  "space_names"        = "results,raw"
}

secrets {
  "token" = "change this"
}
