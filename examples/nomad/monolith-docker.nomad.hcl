# Controller and node in one task, on every client.
#
# In a container of the image that the Containerfile makes: the executable and nothing else. It uses the host's mount and mkfs by way of /host.
# The client must allow it:
#
#   plugin "docker" { config { allow_privileged = true
#                              volumes { enabled = true } } }

variable "image" {
  default = "switchboard:0.1.0"
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
      driver = "docker"

      csi_plugin {
        id             = "org.switchboard.csi"
        type           = "monolith"
        mount_dir      = "/csi"
        health_timeout = "60s"

        # The same path as on the client: the host's mount program is given it.
        stage_publish_base_dir = "${var.nomad_data_dir}/client/csi/monolith/org.switchboard.csi"
      }

      config {
        image      = var.image
        args       = ["--config", "${NOMAD_TASK_DIR}/switchboard.yaml"]
        privileged = true

        mount {
          type   = "bind"
          source = "/"
          target = "/host"
          bind_options {
            propagation = "rshared"
          }
        }

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

        # On the client, so that what was staged is remembered when the container goes, and can be detached by the next one.
        SWITCHBOARD_STATE_DIR = "/host/var/lib/switchboard"
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
