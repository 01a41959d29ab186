# Run by `ferry policies test`.
package nuon_test

import rego.v1

import data.nuon

plan(actions) := {"resource_changes": [{"address": "null_resource.shop", "change": {"actions": actions}}]}

test_a_deletion_is_denied if {
	nuon.deny == {"null_resource.shop would be deleted"} with input as {"plan": plan(["delete"])}
}

test_a_creation_passes if {
	count(nuon.deny) == 0 with input as {"plan": plan(["create"])}
}
