# The controller alone: two of them, either of which Nomad may call. The nodes are node-docker.nomad.hcl.
#
# In a container of the image that the Containerfile makes: the executable and nothing else. The client must allow mounts of host folders:
#
#   plugin "docker" { config { volumes { enabled = true } } }

variable "image" {
  default = "switchboard:0.1.0"
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
      driver = "docker"

      csi_plugin {
        id             = "org.switchboard.csi"
        type           = "controller"
        mount_dir      = "/csi"
        health_timeout = "60s"
      }

      config {
        image = var.image
        args  = ["--config", "${NOMAD_TASK_DIR}/switchboard.yaml", "--csi-mode", "controller"]

        # Where the volumes of the connection "fast" are.
        mount {
          type   = "bind"
          source = "/srv/fast"
          target = "/srv/fast"
        }
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
