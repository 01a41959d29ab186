variable "network" {
  type = string
}

resource "terraform_data" "server" {
  input = { network = var.network, engine = "postgres" }
}

resource "terraform_data" "backup" {
  input = terraform_data.server.id
}

output "address" {
  value = "db.${var.network}.internal"
}

# Sealed on the runner: the control plane never sees the value.
output "password" {
  value     = substr(sha256(terraform_data.server.id), 0, 24)
  sensitive = true
}
