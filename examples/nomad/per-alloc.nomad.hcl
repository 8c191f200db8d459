# Each allocation has a volume of its own: web[0], web[1], web[2]. Nomad does not make them; they must be there before the job is run:
#
#   switchboard ctl nomad-volumes web --count 3 --connection fast --size 1Gi --out volumes
#   for file in volumes/*.hcl; do nomad volume register "$file"; done

job "per-alloc" {
  type = "service"

  group "web" {
    count = 3

    volume "data" {
      type            = "csi"
      source          = "web"
      per_alloc       = true
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }

    # Two allocations with one index would wait for each other's volume.
    update {
      max_parallel = 1
      canary       = 0
    }

    task "web" {
      driver = "docker"

      config {
        image   = "busybox:1"
        command = "httpd"
        args    = ["-f", "-p", "8080", "-h", "/data"]
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
