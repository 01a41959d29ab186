# Judged on the runner, over the whole plan, before anybody sees it.
package nuon

import rego.v1

shards := [change | some change in input.plan.resource_changes; "create" in change.change.actions]

deny contains message if {
	count(shards) > 8
	message := sprintf("%d shards at once are more than a cache may get", [count(shards)])
}

warn contains message if {
	count(shards) > 4
	message := sprintf("%d shards are created at once", [count(shards)])
}
