//! Which resource types usually hold data that a destruction would lose.

/// Whether things of this type usually hold data.
pub fn holds_data(kind: &str) -> bool {
    !HARMLESS.iter().any(|pattern| matches(pattern, kind)) && HOLDING.iter().any(|pattern| matches(pattern, kind))
}

/// Types that the patterns below match, though losing one loses no data.
const HARMLESS: &[&str] = &[
    "*_policy",
    "*_policy_attachment",
    "*_parameter_group",
    "*_subnet_group",
    "*_option_group",
    "*_role_association",
    "*_attachment",
    "*_backup_policy",
    "*_event_subscription",
    "*_firewall_rule",
    "*_virtual_network_rule",
    "*_iam_*",
    "*_acl",
    "*_access_point",
    "*_mount_target",
    "aws_db_proxy*",
    "aws_ebs_default_kms_key",
    "aws_ebs_encryption_by_default",
    "aws_ebs_snapshot_block_public_access",
    "aws_elasticache_user*",
    "aws_s3_bucket_*",
    "aws_secretsmanager_secret_rotation",
    "aws_rds_certificate",
    "google_bigquery_job",
    "google_sql_ssl_cert",
    "google_sql_user",
    "google_storage_bucket_*",
    "kubernetes_persistent_volume_claim_template",
];

/// A `*` stands for any text.
const HOLDING: &[&str] = &[
    "aws_backup_vault",
    "aws_cloudwatch_log_group",
    "aws_cognito_user_pool",
    "aws_db_*",
    "aws_docdb_*",
    "aws_dynamodb_*table",
    "aws_ebs_*",
    "aws_ecr_repository",
    "aws_ecrpublic_repository",
    "aws_efs_*",
    "aws_elasticache_*",
    "aws_elasticsearch_domain",
    "aws_fsx_*",
    "aws_glacier_vault",
    "aws_keyspaces_table",
    "aws_kinesis_stream",
    "aws_kms_key",
    "aws_memorydb_cluster",
    "aws_mq_broker",
    "aws_msk_*cluster",
    "aws_neptune_*",
    "aws_opensearch_domain",
    "aws_opensearchserverless_collection",
    "aws_qldb_ledger",
    "aws_rds_*",
    "aws_redshift*_cluster",
    "aws_redshiftserverless_namespace",
    "aws_route53_zone",
    "aws_s3_bucket",
    "aws_s3_object",
    "aws_secretsmanager_secret*",
    "aws_sqs_queue",
    "aws_ssm_parameter",
    "aws_timestreamwrite_*",
    "azurerm_*_cache",
    "azurerm_*_database",
    "azurerm_*_flexible_server",
    "azurerm_*_server",
    "azurerm_container_registry",
    "azurerm_cosmosdb_*",
    "azurerm_eventhub",
    "azurerm_key_vault*",
    "azurerm_kusto_*",
    "azurerm_managed_disk",
    "azurerm_mssql_*",
    "azurerm_netapp_volume",
    "azurerm_recovery_services_vault",
    "azurerm_storage_*",
    "azurerm_synapse_*_pool",
    "digitalocean_database_*",
    "digitalocean_spaces_bucket",
    "google_alloydb_*",
    "google_artifact_registry_repository",
    "google_bigquery_*",
    "google_bigtable_*",
    "google_compute_snapshot",
    "google_dns_managed_zone",
    "google_filestore_*",
    "google_firestore_*",
    "google_kms_*",
    "google_memcache_instance",
    "google_pubsub_topic",
    "google_redis_*",
    "google_secret_manager_secret*",
    "google_spanner_*",
    "google_sql_*",
    "google_storage_bucket",
    "kubernetes_namespace*",
    "kubernetes_persistent_volume*",
    "kubernetes_secret*",
    "kubernetes_stateful_set*",
    "mongodbatlas_*cluster",
    "mysql_database",
    "postgresql_database",
    "random_bytes",
    "random_password",
    "tls_private_key",
    "vault_*_secret*",
    "*_database",
    "*_database_cluster",
    "*_database_instance",
    "*_disk",
    "*_volume",
];

/// Matches a pattern with any number of `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_hold_data() {
        for (kind, expected) in [
            ("aws_db_instance", true),
            ("aws_db_subnet_group", false),
            ("aws_db_parameter_group", false),
            ("aws_rds_cluster", true),
            ("aws_rds_cluster_parameter_group", false),
            ("aws_s3_bucket", true),
            ("aws_s3_bucket_policy", false),
            ("aws_s3_bucket_versioning", false),
            ("aws_efs_file_system", true),
            ("aws_efs_mount_target", false),
            ("aws_ebs_volume", true),
            ("aws_volume_attachment", false),
            ("aws_dynamodb_table", true),
            ("aws_dynamodb_global_table", true),
            ("google_sql_database_instance", true),
            ("google_storage_bucket", true),
            ("google_storage_bucket_iam_member", false),
            ("google_compute_disk", true),
            ("azurerm_postgresql_flexible_server", true),
            ("azurerm_postgresql_flexible_server_firewall_rule", false),
            ("azurerm_mssql_database", true),
            ("azurerm_storage_account", true),
            ("kubernetes_persistent_volume_claim", true),
            ("hcloud_volume", true),
            ("random_password", true),
            ("terraform_data", false),
            ("aws_instance", false),
            ("null_resource", false),
            ("", false),
        ] {
            assert_eq!(holds_data(kind), expected, "{kind}");
        }
    }
}
