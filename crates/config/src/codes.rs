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
        "Every file of an app is read as TOML 1.0 before anything else; what stands after the mistake may be misread, so other messages about the same file can follow from it.",
        "Look at the place that the message names: mostly a quote, a bracket or a `=` is missing there, or a key is written twice.";
    NotText = "not_text": "A file is not UTF-8 text.",
        "TOML files, and files whose contents become part of the config, are text.",
        "Save the file as UTF-8. Binary files belong into a directory that a component uses as its source.";
    FileTooLarge = "file_too_large": "A file, or all of them together, are larger than a config may be.",
        "A config is kept in memory and sent as a whole.",
        "Move large files into the source of a component, or fetch them when they are needed.";
    TooManyFiles = "too_many_files": "The app has more TOML files than a config may have.",
        "A config is kept in memory and sent as a whole.",
        "Check that the directory is the app's own, not one above it.";
    UnknownKey = "unknown_key": "A key means nothing here, and has no effect.",
        "It is misspelt, it belongs to another kind of file, or another tool reads it.",
        "Take the name that the hint gives, or delete the key. With `--strict` this is an error.";
    MisplacedKey = "misplaced_key": "A key stands in the wrong table, and has no effect.",
        "In TOML, every key after a header such as `[[steps]]` or `[vars]` is part of that table, whatever its indentation or the blank lines between.",
        "Move the key above the first header, or below the header it belongs to. With `--strict` this is an error.";
    RemovedKey = "removed_key": "A key is of an old form that is not read any more.",
        "Older versions of the format wrote lists of pairs where a table of keys is written now.",
        "Write what the hint says.";
    DeprecatedKey = "deprecated_key": "A key works, or is accepted, and should not be used any more.",
        "Something better has taken its place, or it never had an effect.",
        "Write what the hint says.";
    WrongType = "wrong_type": "A value is of the wrong type.",
        "A key takes text, a number, a boolean, a list or a table. Numbers, booleans and dates are taken as text where text is wanted; the rest is not guessed.",
        "Write the value in the form that the message names.";
    MissingKey = "missing_key": "A key that is needed is missing or empty.",
        "The thing can't be made without it.",
        "Add the key, above the first header of a table below it.";
    MissingFile = "missing_file": "A file that every app has is missing.",
        "An app needs at least `metadata.toml`, `sandbox.toml` and `runner.toml`.",
        "Add the file; `ferry apps init` writes all of them with comments.";
    ExclusiveKeys = "exclusive_keys": "Keys that exclude each other are both there.",
        "They are two ways of saying the same, and it would be a guess which one counts.",
        "Delete all but one.";
    BadValue = "bad_value": "A value is not one of those that the key takes.",
        "It is misspelt, or comes from another version of the format.",
        "Take one of the values that the hint lists.";
    OutOfRange = "out_of_range": "A number is too small or too large.",
        "The key has bounds.",
        "Choose a number inside the bounds that the message names.";
    BadDuration = "bad_duration": "A duration can't be read, or is out of bounds.",
        "Durations are written as Go writes them: `30s`, `5m`, `1h30m`. Timeouts are at least one second and at most one hour.",
        "Write a number with a unit: `s`, `m` or `h`.";
    BadCron = "bad_cron": "A schedule is not cron.",
        "A schedule has five fields: minute, hour, day of month, month, day of week.",
        "Write something like `*/10 * * * *` (every ten minutes) or `0 3 * * *` (each day at three, UTC).";
    BadRegion = "bad_region": "A region does not look like one of this cloud.",
        "Regions are written as the cloud itself writes them: `us-east-1` (AWS), `us-central1` (GCP), `eastus` (Azure).",
        "Check the name in the cloud's console.";
    BadName = "bad_name": "A name has characters that it can't have.",
        "Templates say the names of components, inputs and secrets after a dot, so these have only lower-case letters, digits and `_`. Some names are kept for the platform.",
        "Rename it as the message says, here and wherever it is used.";
    BadJson = "bad_json": "A text that must be JSON is not.",
        "Policy documents and permission boundaries are handed to the cloud as they are.",
        "Correct the JSON at the place that the message names.";
    BadPolicy = "bad_policy": "A policy can't be read as Rego, or says nothing.",
        "Policies on what is deployed are Rego of `package nuon` (or `ferry`) with rules `deny` and `warn`, in the old or the new syntax. A policy stands alone: it reads no other data, and has no network, no clock and no randomness. One that can't be evaluated denies everything.",
        "Correct the policy at the place that the message names; docs/policies.md has an example, and `ferry policies test` tries it out.";
    BadModule = "bad_module": "A Terraform module can't be read, or does not fit what the app says about it.",
        "The directory of a component or of the sandbox is read before anything is built: its files must be HCL, every variable without a default needs a value, outputs that templates read must exist, and links must stay inside the directory.",
        "Correct the module, or the component's `vars`, as the message says.";
    BadAddress = "bad_address": "An address is not of the form that is needed here.",
        "Templates of an AWS stack are read by CloudFormation, which takes them from S3 only.",
        "Put the file where the message says, and name it by its https address.";
    DuplicateName = "duplicate_name": "Two things have the same name.",
        "Other places speak of things by name, so each name is used once per kind.",
        "Rename one of them. The hint says where the other one is.";
    DuplicateValue = "duplicate_value": "Something that is there once at most is there twice.",
        "Only one of the two could have an effect.",
        "Delete one of them. The hint says where the other one is.";
    BothForms = "both_forms": "The same kind of thing is given as a file and as a directory.",
        "Inputs, secrets, policies, roles and branches are written either in one file or in a directory with one file each; with both it is not clear what counts.",
        "Move everything into one of the two.";
    FileNotFound = "file_not_found": "A file that a value names does not exist.",
        "Values that start with `./`, `../` or `file://` are replaced by the contents of that file. Paths start at the directory that the message names, which for components and actions is `components` and `actions`, whatever sub-directory the TOML file is in.",
        "Correct the path, or add the file.";
    PathEscape = "path_escape": "A path leads out of the app's directory.",
        "An app is complete in itself: what lies outside is not there when it is synced.",
        "Copy the file into the app's directory.";
    NotFetched = "not_fetched": "The contents of a remote file are not at hand.",
        "A value that is an address (`https://`, `git::`) is replaced by what lies there, which is fetched before the config is read.",
        "Check the address and the network, then try again.";
    IncludeLoop = "include_loop": "A file includes itself.",
        "The files that `source` names are read into each other.",
        "Break the loop.";
    StrayFile = "stray_file": "A file is not part of the format, and is not read.",
        "The kinds of files are known by their names and directories: this one is misspelt, or belongs to another tool.",
        "Rename it as the hint says, or move it into a directory of its own, such as `src`.";
    UnknownComponent = "unknown_component": "A component is named that the app does not have.",
        "It is misspelt, was renamed, or its file is not in `components`.",
        "Take the name that the hint gives. Names are those of the key `name`, not of the file.";
    UnknownAction = "unknown_action": "An action is named that the app does not have.",
        "It is misspelt, was renamed, or its file is not in `actions`.",
        "Take the name that the hint gives. Names are those of the key `name`, not of the file.";
    UnknownRole = "unknown_role": "A role is named that the app does not have.",
        "Roles are those of `permissions` and `break_glass`. Names are compared as templates, blanks apart.",
        "Take the name that the hint gives, or add the role.";
    UnknownName = "unknown_name": "Something is named that the app does not have.",
        "It is misspelt, or was renamed.",
        "Take the name that the hint gives.";
    UnknownInput = "unknown_input": "An input is named that the app does not declare.",
        "Inputs are declared in `inputs.toml` or `inputs/`. Rendering fails on one that is not.",
        "Take the name that the hint gives, or declare the input.";
    UnknownSecret = "unknown_secret": "A secret is named that the app does not declare.",
        "Secrets are declared in `secrets.toml` or `secrets/`. Rendering fails on one that is not.",
        "Take the name that the hint gives, or declare the secret.";
    DependencyCycle = "dependency_cycle": "Components wait for each other.",
        "A component is deployed after those that it depends on: those in `dependencies`, and those whose outputs its templates read. The message prints the circle.",
        "Take one of the dependencies or references of the circle away.";
    MissingRole = "missing_role": "One of the three roles that every app has is missing.",
        "Installs are made, kept going and removed with the roles `provision`, `maintenance` and `deprovision`.",
        "Add a file to `permissions/` with that `type`.";
    CloudMismatch = "cloud_mismatch": "Something is of another cloud than the runner.",
        "An install lives in one cloud: that of `runner_type` in `runner.toml`.",
        "Change one of the two.";
    BadPrincipal = "bad_principal": "A rule of operation roles is about something that does not exist.",
        "Principals are `nuon::sandbox` (provision, reprovision, deprovision), `nuon::component:NAME` (deploy, teardown) and `nuon::action:NAME` (trigger); `*` stands for all names.",
        "Correct the principal or the operation.";
    NoEffect = "no_effect": "Something is said that has no effect.",
        "It contradicts something else, which wins.",
        "Delete it, or change what it contradicts.";
    TemplateSyntax = "template_syntax": "A template can't be read.",
        "Texts that contain `.nuon` are templates of Go: what stands between `{{` and `}}` is code. In such a text, braces that are meant for another tool must be written as {{`{{`}}.",
        "Correct the template at the place that the message names.";
    TemplatePath = "template_path": "A template reads something that does not exist.",
        "Paths below `.nuon` are fixed: `install`, `inputs`, `sandbox`, `install_stack`, `components`, `actions`, `secrets` and so on. Rendering fails on one that is missing.",
        "Take the path that the hint gives.";
    TemplateScope = "template_scope": "A template reads something that is not there yet.",
        "The stack is made before the sandbox, and the sandbox before components and actions; what comes later can't be read earlier.",
        "Use an input, or move the value to something that is made later.";
    TemplateDot = "template_dot": "`{{nuon.` lacks a dot, and is not a template.",
        "Only texts with `.nuon` are rendered; this one stays as it is, braces included.",
        "Write `{{.nuon.`.";
    TooManyProblems = "too_many_problems": "There are more problems than are shown.",
        "The list is bounded.",
        "Correct those that are shown, and look again.";
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
