# A job with a volume. A task that uses one needs a driver that can mount: docker, podman, exec or java, but not raw_exec.

job "consumer" {
  type = "service"

  group "consumer" {
    volume "data" {
      type            = "csi"
      source          = "data"
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }

    task "consumer" {
      driver = "docker"

      config {
        image   = "busybox:1"
        command = "sh"
        args    = ["-c", "date >> /data/dates; cat /data/dates; exec sleep 86400"]
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
