variable "shop_name" {
  type = string
}

variable "maintenance" {
  type = bool
}

variable "catalog_id" {
  type = string
}

variable "namespace" {
  type = string
}

resource "terraform_data" "storefront" {
  input = {
    title   = var.maintenance ? "${var.shop_name} (closed)" : var.shop_name
    catalog = var.catalog_id
  }
}

output "title" {
  value = terraform_data.storefront.output.title
}

output "url" {
  value = "http://storefront.${var.namespace}.svc.cluster.local"
}
