variable "who" {
  type = string
}

output "text" {
  value = "Hello, ${var.who}!"
}
