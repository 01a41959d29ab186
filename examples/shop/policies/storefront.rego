# Every message in `deny` stops the deploy; those in `warn` are only shown.
package nuon

import rego.v1

deny contains message if {
	some change in input.plan.resource_changes
	"delete" in change.change.actions
	message := sprintf("%s would be deleted", [change.address])
}

warn contains message if {
	count(input.plan.resource_changes) > 20
	message := "the plan has more than 20 changes"
}
