variable "title" {
  type = string
}

variable "banner_file" {
  type = string
}

variable "address" {
  type = string
}

variable "password" {
  type      = string
  sensitive = true
}

variable "endpoints" {
  type = list(string)
}

locals {
  has_banner = var.banner_file == "" ? false : fileexists(var.banner_file)
}

resource "terraform_data" "page" {
  input = {
    title  = var.title
    banner = local.has_banner ? trimspace(file(var.banner_file)) : "Welcome"
  }
}

# Another password, or another cache, starts the server anew.
resource "terraform_data" "server" {
  input            = { address = var.address, endpoints = var.endpoints }
  triggers_replace = sha256(var.password)

  provisioner "local-exec" {
    command = "echo the server starts; sleep 1; echo it is up"
  }
}

output "url" {
  value = "http://${terraform_data.server.id}.internal"
}
