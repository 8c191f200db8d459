# The controller alone: two of them, either of which Nomad may call. The nodes are node-raw-exec.nomad.hcl.
#
# No container: the executable runs on the client itself. The client must run as root and allow it:
#
#   plugin "raw_exec" { config { enabled = true } }

variable "executable" {
  description = "Where clients get the executable from; `npm run build` makes dist/switchboard-linux-x64"
  default     = "https://files.example.org/switchboard-linux-x64"
}

job "switchboard-controller" {
  type     = "service"
  priority = 90

  group "controller" {
    count = 2

    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

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
        type           = "controller"
        health_timeout = "60s"
      }

      artifact {
        source      = var.executable
        destination = "local/switchboard"
        mode        = "file"
      }

      config {
        command = "local/switchboard"
        args    = ["--config", "${NOMAD_TASK_DIR}/switchboard.yaml", "--csi-mode", "controller"]
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
        EOT
      }

      # One template for each connection. A change is used from the next call on, without a restart. Controllers and nodes are on different
      # machines, so /srv/fast has to be the same storage on all of them.
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
