variable "install_id" {
  type = string
}

resource "terraform_data" "namespace" {
  input = "shop-${var.install_id}"
}

output "namespace" {
  value = terraform_data.namespace.output
}
