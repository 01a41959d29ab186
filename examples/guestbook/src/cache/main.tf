variable "network" {
  type = string
}

variable "shards" {
  type = number
}

resource "terraform_data" "shard" {
  for_each = toset([for n in range(var.shards) : "shard-${n + 1}"])
  input    = { network = var.network, name = each.key }
}

output "endpoints" {
  value = [for shard in terraform_data.shard : "${shard.input.name}.${var.network}.internal"]
}
