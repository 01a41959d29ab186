variable "products" {
  type = number
}

locals {
  names = [for n in range(var.products) : "product-${n + 1}"]
}

resource "terraform_data" "catalog" {
  input = local.names
}

# Read by others as `.nuon.components.catalog.outputs.id`.
output "id" {
  value = terraform_data.catalog.id
}

output "products" {
  value = terraform_data.catalog.output
}
