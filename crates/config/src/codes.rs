//! Every kind of problem: a stable code, and its page in `docs/errors`.

macro_rules! codes {
    ($($variant:ident = $text:literal: $what:literal, $why:literal, $fix:literal;)*) => {
        /// Stable codes of problems in an app's files.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $what] $variant,)* }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// One sentence about it.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$variant => $what,)* }
            }

            /// The page of the code, in Markdown.
            pub fn page(self) -> String {
                let (why, fix) = match self { $(Self::$variant => ($why, $fix),)* };
                format!("# `{}`\n\n{}\n\n**Why.** {why}\n\n**What to do.** {fix}\n", self.as_str(), self.what())
            }
        }
    };
}

codes! {
    TomlSyntax = "toml_syntax": "A file is not valid TOML.",
        "Every file of an app is read as TOML 1.0 before anything else; the parser may misread what follows the mistake, so other messages about the same file may have the same cause.",
        "Check the place that the message names. Usually a quote, a bracket or a `=` is missing there, or a key appears twice.";
    NotText = "not_text": "A file is not UTF-8 text.",
        "TOML files, and files whose contents become part of the config, are text.",
        "Save the file as UTF-8. Put binary files into a directory that a component uses as its source.";
    FileTooLarge = "file_too_large": "A file, or all files together, exceed the size limit of a config.",
        "Ferry reads and sends a config as a whole.",
        "Move large files into the source of a component, or fetch them when they are needed.";
    TooManyFiles = "too_many_files": "The app has too many TOML files.",
        "Ferry reads and sends a config as a whole.",
        "Check that the directory is the app's own, not one above it.";
    UnknownKey = "unknown_key": "Ferry doesn't know this key. It has no effect.",
        "It is misspelt, it belongs to another kind of file, or another tool reads it.",
        "Use the name in the hint, or delete the key. With `--strict` this is an error.";
    MisplacedKey = "misplaced_key": "A key is in the wrong table. It has no effect.",
        "In TOML, every key after a header such as `[[steps]]` or `[vars]` is part of that table, regardless of indentation and blank lines.",
        "Move the key above the first header, or below the header it belongs to. With `--strict` this is an error.";
    RemovedKey = "removed_key": "The key belongs to an old version of the format and is no longer supported.",
        "Older versions of the format used lists of pairs where it now has a table of keys.",
        "Write what the hint says.";
    DeprecatedKey = "deprecated_key": "The key is deprecated.",
        "A better key replaced it, or it never had an effect.",
        "Write what the hint says.";
    WrongType = "wrong_type": "A value is of the wrong type.",
        "A key takes text, a number, a boolean, a list or a table. If a key takes text, Ferry also accepts numbers, booleans and dates. It converts nothing else.",
        "Write the value as the type that the message names.";
    MissingKey = "missing_key": "A required key is missing or empty.",
        "Ferry can't create the object without it.",
        "Add the key. Put it above the first table header (`[…]`) that follows in the file.";
    MissingFile = "missing_file": "A required file is missing.",
        "An app needs at least `metadata.toml`, `sandbox.toml` and `runner.toml`.",
        "Add the file; `ferry apps init` writes all of them with comments.";
    ExclusiveKeys = "exclusive_keys": "Two keys exclude each other.",
        "They are two ways to set the same thing, and Ferry doesn't guess which one you mean.",
        "Delete all but one.";
    BadValue = "bad_value": "The key doesn't accept this value.",
        "It is misspelt, or comes from another version of the format.",
        "Use one of the values that the hint lists.";
    OutOfRange = "out_of_range": "A number is too small or too large.",
        "The key has a minimum and a maximum.",
        "Choose a number in the range that the message names.";
    BadDuration = "bad_duration": "A duration is invalid or out of range.",
        "Durations have Go's format: `30s`, `5m`, `1h30m`. Timeouts are at least one second and at most one hour.",
        "Write a number with a unit: `s`, `m` or `h`.";
    BadCron = "bad_cron": "A schedule is not a valid cron expression.",
        "A schedule has five fields: minute, hour, day of month, month, day of week.",
        "Write something like `*/10 * * * *` (every ten minutes) or `0 3 * * *` (each day at three, UTC).";
    BadRegion = "bad_region": "The cloud has no region of this form.",
        "Write regions as the cloud does: `us-east-1` (AWS), `us-central1` (GCP), `eastus` (Azure).",
        "Check the name in the cloud's console.";
    BadName = "bad_name": "A name contains characters that are not allowed, or is reserved.",
        "Templates use the names of components, inputs and secrets after a dot, so these names have only lower-case letters, digits and `_`. Some names are reserved for Ferry.",
        "Rename it as the message says, here and everywhere it is used.";
    BadJson = "bad_json": "A text is not valid JSON.",
        "Ferry passes policy documents and permission boundaries on to the cloud unchanged.",
        "Correct the JSON at the place that the message names.";
    BadPolicy = "bad_policy": "A policy is not valid Rego, or has no `deny` or `warn` rule.",
        "A policy is Rego in `package nuon` (or `ferry`) with rules named `deny` and `warn`, in the old or the new syntax. It can't read other data, use the network or the clock, or draw random numbers. A policy that can't be evaluated denies everything.",
        "Correct the policy at the place that the message names; docs/policies.md has an example. Test the policy with `ferry policies test`.";
    BadModule = "bad_module": "A Terraform module is invalid, or doesn't match the app's files.",
        "Ferry reads the directory of a component or the sandbox before it builds anything. Its files must be valid HCL, every variable without a default needs a value, outputs that templates read must exist, and symbolic links must stay inside the directory.",
        "Correct the module, or the component's `vars`, as the message says.";
    BadAddress = "bad_address": "An address has the wrong form.",
        "CloudFormation reads the templates of an AWS stack, and it accepts only addresses in S3.",
        "Upload the file where the message says, and use its https address.";
    DuplicateName = "duplicate_name": "Two things have the same name.",
        "Other files refer to an object by its name, so a name must be unique among objects of the same kind.",
        "Rename one of them. The hint says where the other one is.";
    DuplicateValue = "duplicate_value": "Something appears twice that may appear only once.",
        "Only one of the two could have an effect.",
        "Delete one of them. The hint says where the other one is.";
    BothForms = "both_forms": "The app has both a file and a directory for the same kind of object.",
        "Inputs, secrets, policies, roles and branches are either in one file or in a directory with one file each. If both exist, Ferry doesn't guess which one you mean.",
        "Move everything into one of the two.";
    FileNotFound = "file_not_found": "A value names a file that doesn't exist.",
        "Ferry replaces a value that starts with `./`, `../` or `file://` by the content of that file. The path is relative to the directory that the message names: for components and actions that is `components` and `actions`, even if the TOML file is in a subdirectory.",
        "Correct the path, or add the file.";
    PathEscape = "path_escape": "A path leads out of the app's directory.",
        "Ferry syncs only the app's directory, so files outside of it would be missing.",
        "Copy the file into the app's directory.";
    NotFetched = "not_fetched": "Ferry couldn't download a remote file.",
        "If a value is an address (`https://`, `git::`), Ferry downloads the file and replaces the value by its content before it reads the config.",
        "Check the address and the network, then try again.";
    IncludeLoop = "include_loop": "A file includes itself.",
        "Ferry includes the files that `source` names, and they include each other.",
        "Remove one of the `source` keys.";
    StrayFile = "stray_file": "A file is not part of the app format. Ferry ignores it.",
        "Ferry recognizes files by their names and directories. This name is misspelt, or the file belongs to another tool.",
        "Rename it as the hint says, or move it into a directory of its own, such as `src`.";
    UnknownComponent = "unknown_component": "The app has no component of this name.",
        "It is misspelt, was renamed, or its file is not in `components`.",
        "Use the name in the hint. Ferry uses the key `name`, not the name of the file.";
    UnknownAction = "unknown_action": "The app has no action of this name.",
        "It is misspelt, was renamed, or its file is not in `actions`.",
        "Use the name in the hint. Ferry uses the key `name`, not the name of the file.";
    UnknownRole = "unknown_role": "The app has no role of this name.",
        "An app's roles are in `permissions` and `break_glass`. If a name is a template, both must have the same template (spaces don't matter).",
        "Use the name in the hint, or add the role.";
    UnknownName = "unknown_name": "The app has no object of this name.",
        "It is misspelt, or was renamed.",
        "Use the name in the hint.";
    UnknownInput = "unknown_input": "The app doesn't declare this input.",
        "Inputs are declared in `inputs.toml` or `inputs/`. A template that reads an undeclared input can't be rendered.",
        "Use the name in the hint, or declare the input.";
    UnknownSecret = "unknown_secret": "The app doesn't declare this secret.",
        "Secrets are declared in `secrets.toml` or `secrets/`. A template that reads an undeclared secret can't be rendered.",
        "Use the name in the hint, or declare the secret.";
    DependencyCycle = "dependency_cycle": "Components depend on each other in a circle.",
        "Ferry deploys a component after the components in its `dependencies` and those whose outputs its templates read. The message shows the circle.",
        "Remove one dependency or reference of the circle.";
    MissingRole = "missing_role": "One of the three required roles is missing.",
        "Ferry creates, updates and deletes installs with the roles `provision`, `maintenance` and `deprovision`.",
        "Add a file to `permissions/` with that `type`.";
    CloudMismatch = "cloud_mismatch": "A file is for another cloud than the runner.",
        "An install is in one cloud, the one of `runner_type` in `runner.toml`.",
        "Change one of the two.";
    BadPrincipal = "bad_principal": "A rule of operation roles names a principal or operation that doesn't exist.",
        "Principals are `nuon::sandbox` (provision, reprovision, deprovision), `nuon::component:NAME` (deploy, teardown) and `nuon::action:NAME` (trigger); `*` means all names.",
        "Correct the principal or the operation.";
    NoEffect = "no_effect": "A setting has no effect.",
        "Another setting contradicts it and takes precedence.",
        "Delete it, or change the other setting.";
    TemplateSyntax = "template_syntax": "A template has a syntax error.",
        "A text that contains `.nuon` is a Go template, and everything between `{{` and `}}` is code. In such a text, write braces for another tool as {{`{{`}}.",
        "Correct the template at the place that the message names.";
    TemplatePath = "template_path": "A template reads a value that doesn't exist.",
        "Paths below `.nuon` are fixed: `install`, `inputs`, `sandbox`, `install_stack`, `components`, `actions`, `secrets` and so on. A template that reads a missing path can't be rendered.",
        "Use the path in the hint.";
    TemplateScope = "template_scope": "A template reads a value that doesn't exist yet at that time.",
        "Ferry creates the stack before the sandbox, and the sandbox before components and actions. Earlier parts can't read later ones.",
        "Use an input, or move the value to a part that is created later.";
    TemplateDot = "template_dot": "`{{nuon.` lacks its first dot, so it is not a template.",
        "Ferry renders only texts with `.nuon`. It leaves this one as it is, braces included.",
        "Write `{{.nuon.`.";
    TooManyProblems = "too_many_problems": "Ferry found more problems than it shows.",
        "The list has a maximum length.",
        "Correct the problems that are shown, then run the command again.";
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
