//! How to host a runner elsewhere: a systemd unit, a Kubernetes Deployment, or a script for a machine.

use api::control::{JoinCommand, Runner};

use crate::args::ManifestFormat;

/// The text that brings the runner up; it holds the credential.
pub(crate) fn text(format: ManifestFormat, runner: &Runner, join: &JoinCommand, image: &str) -> String {
    let name = format!("ferry-{}-{}", runner.kind, runner.id);
    let (kind, url, credential) = (runner.kind.as_str(), join.runner_url.as_str(), join.credential.as_str());
    let trust = join.trust_keys.join(",");
    match format {
        ManifestFormat::Systemd => unit(&name, kind, url, credential, &trust),
        ManifestFormat::Kubernetes => deployment(&name, kind, url, credential, &trust, image),
        // Names of users have at most 32 characters.
        ManifestFormat::Script => script(&name, &format!("fr-{}", runner.id), kind, url, credential, &trust),
    }
}

/// Its own user, state directory and cgroup are systemd's to give.
fn unit(name: &str, kind: &str, url: &str, credential: &str, trust: &str) -> String {
    format!(
        "# Put this into /etc/systemd/system/{name}.service, and the credential, for root's eyes alone, beside it:
#   install -m 0600 /dev/null /etc/systemd/system/{name}.join
#   printf %s '{credential}' >/etc/systemd/system/{name}.join
[Unit]
Description=Ferry runner {name}
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/ferry-runner {kind} --state-dir /var/lib/{name} --url {url} --trust-key {trust} --join-file ${{CREDENTIALS_DIRECTORY}}/join
LoadCredential=join:/etc/systemd/system/{name}.join
Environment=HOME=/var/lib/{name}
DynamicUser=yes
StateDirectory={name}
StateDirectoryMode=0700
Delegate=yes
# Executors outlive their session: a restart takes them over.
KillMode=process
Restart=always
RestartSec=2
TimeoutStopSec=210

[Install]
WantedBy=multi-user.target
"
    )
}

fn deployment(name: &str, kind: &str, url: &str, credential: &str, trust: &str, image: &str) -> String {
    let join = model::env::RUNNER_JOIN;
    format!(
        "apiVersion: v1
kind: Namespace
metadata:
  name: {name}
---
apiVersion: v1
kind: Secret
metadata:
  name: runner
  namespace: {name}
stringData:
  join: \"{credential}\"
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: state
  namespace: {name}
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 20Gi
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: runner
  namespace: {name}
spec:
  replicas: 1
  # Two would fence each other.
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app: runner
  template:
    metadata:
      labels:
        app: runner
    spec:
      automountServiceAccountToken: false
      # The drain (60 s), then what Terraform needs to save its state (120 s), then the last results.
      terminationGracePeriodSeconds: 210
      containers:
        - name: runner
          image: {image}
          args: [\"{kind}\", \"--state-dir\", \"/state\", \"--url\", \"{url}\", \"--trust-key\", \"{trust}\"]
          env:
            - name: {join}
              valueFrom:
                secretKeyRef:
                  name: runner
                  key: join
          volumeMounts:
            - name: state
              mountPath: /state
      volumes:
        - name: state
          persistentVolumeClaim:
            claimName: state
"
    )
}

fn script(name: &str, user: &str, kind: &str, url: &str, credential: &str, trust: &str) -> String {
    format!(
        "#!/bin/sh
# Holds the runner's credential: for root's eyes alone.
# Brings the runner up on a machine, as a user of its own. Needs root, and ferry-runner in /usr/local/bin.
set -eu
id {user} >/dev/null 2>&1 || useradd --system --home-dir /var/lib/{name} --shell /usr/sbin/nologin {user}
install -d -m 0700 -o {user} -g {user} /var/lib/{name}
umask 077
printf '%s' '{credential}' >/var/lib/{name}/join
chown {user}: /var/lib/{name}/join
cd /var/lib/{name}
exec setpriv --reuid={user} --regid={user} --init-groups env HOME=/var/lib/{name} \\
    /usr/local/bin/ferry-runner {kind} --state-dir /var/lib/{name}/state --url {url} \\
    --trust-key {trust} --join-file /var/lib/{name}/join
"
    )
}
