# Controller and node in one task, on every client.
#
# No container: the executable runs on the client itself, with the client's own mount and mkfs. The client must run as root and allow it:
#
#   plugin "raw_exec" { config { enabled = true } }

variable "executable" {
  description = "Where clients get the executable from; `npm run build` makes dist/switchboard-linux-x64"
  default     = "https://files.example.org/switchboard-linux-x64"
}

variable "nomad_data_dir" {
  description = "data_dir of the clients"
  default     = "/opt/nomad/data"
}

job "switchboard" {
  # Every client gets one, and a drain with -ignore-system leaves it alone.
  type     = "system"
  priority = 90

  group "monolith" {
    # By default Nomad gives up after two restarts. The volumes of all jobs on this client need the plugin.
    restart {
      attempts = 10
      interval = "10m"
      delay    = "5s"
      mode     = "delay"
    }

    task "plugin" {
      driver = "raw_exec"

      csi_plugin {
        id             = "org.switchboard.csi"
        type           = "monolith"
        health_timeout = "60s"

        # The real path on the client: there is no container in which it could be mounted elsewhere.
        stage_publish_base_dir = "${var.nomad_data_dir}/client/csi/monolith/org.switchboard.csi"
      }

      artifact {
        source      = var.executable
        destination = "local/switchboard"
        mode        = "file"
      }

      config {
        command = "local/switchboard"
        args    = ["--config", "${NOMAD_TASK_DIR}/switchboard.yaml"]
      }

      env {
        # CSI_ENDPOINT is set by Nomad.
        CSI_NODE_ID           = "${node.unique.name}"
        SWITCHBOARD_LOG_LEVEL = "info"
      }

      template {
        destination = "local/switchboard.yaml"
        data        = <<-EOT
          driver: proxy
          proxy:
            configFolder: $NOMAD_TASK_DIR/connections
            nodeTopology:
              type: node
        EOT
      }

      # One template for each connection. A change is used from the next call on, without a restart.
      template {
        destination = "local/connections/fast.yaml"
        change_mode = "noop"
        data        = <<-EOT
          driver: local-hostpath
          local-hostpath:
            shareBasePath: /srv/fast
            controllerBasePath: /srv/fast
        EOT
      }

      # Calls in flight are finished.
      kill_timeout = "40s"

      resources {
        cpu    = 100
        memory = 128
      }
    }
  }
}
