variable "name" {
  type = string
}

resource "terraform_data" "network" {
  input = "net-${var.name}"
}

# Templates read it as `.nuon.sandbox.outputs.network`.
output "network" {
  value = terraform_data.network.output
}
