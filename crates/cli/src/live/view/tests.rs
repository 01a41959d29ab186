use model::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    serde_json::from_value(json!("2025-01-01T00:01:40Z")).expect("a time")
}

fn step(id: &str, name: &str, status: &str, more: Value) -> Value {
    let mut step = json!({
        "id": id, "workflow_id": "w", "name": name, "idx": 0, "group_idx": 0, "group_retry_idx": 0,
        "execution_type": "system", "status": { "status": status }, "created_at": "2025-01-01T00:00:00Z",
    });
    step.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    step
}

fn workflow(status: &str, steps: Vec<Value>) -> Workflow {
    serde_json::from_value(json!({
        "id": "w", "type": "deploy_components", "status": { "status": status, "status_human_description": "it broke" },
        "owner_id": "i", "owner_type": "installs", "name": "n", "created_by_id": "a", "approval_option": "prompt",
        "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z", "owner_name": "acme",
        "started_at": "2025-01-01T00:00:00Z", "config_version": 3, "finished": status == "error", "steps": steps,
    }))
    .expect("a workflow")
}

fn awaiting(id: &str, name: &str, approval: &str) -> Value {
    step(
        id,
        name,
        "approval-awaiting",
        json!({
            "status": { "status": "approval-awaiting", "status_human_description": "waits for an approval" },
            "approval": { "id": approval, "workflow_step_id": id, "type": "t" },
            "changes": { "create": 2, "update": 0, "replace": 0, "destroy": 1, "outputs": 0 },
        }),
    )
}

fn some() -> Vec<Value> {
    let done = json!({ "started_at": "2025-01-01T00:00:00Z", "finished_at": "2025-01-01T00:00:05Z", "finished": true });
    let runs = json!({ "started_at": "2025-01-01T00:01:30Z" });
    vec![
        step("1", "await runner healthy", "success", done),
        step("2", "apply db", "in-progress", runs),
        awaiting("3", "plan api", "sha256:p"),
        step(
            "4",
            "apply api",
            "pending",
            json!({ "status": { "status": "pending", "status_human_description": "waits for plan api" } }),
        ),
        step("5", "hidden", "success", json!({ "execution_type": "hidden" })),
    ]
}

fn shown() -> View {
    let mut view = View::new(true);
    view.update(workflow("in-progress", some()));
    view
}

fn plan() -> Value {
    let resource = |action: &str, n: usize| json!({ "address": format!("db.x[{n}]"), "action": action });
    json!({ "resources": [resource("create", 0), resource("create", 1), resource("destroy", 2)] })
}

/// The picture as text, without blanks at the ends of lines.
fn picture(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let now = now();
    terminal.draw(|frame| view.render(frame.area(), frame.buffer_mut(), now)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(width.max(1)));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n")
}

fn press(view: &mut View, keys: &str) -> Option<Wish> {
    let mut wish = None;
    for key in keys.chars() {
        wish = view.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }
    wish
}

fn code(view: &mut View, code: KeyCode) -> Option<Wish> {
    view.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn a_workflow_that_waits_for_an_approval() {
    let mut view = shown();
    view.put_plan("sha256:p", &plan());
    let expected = "\
deploy components of acme  in-progress  1m40s  version 3
  ✓ await runner healthy  success               5s
  ⠋ apply db              in-progress          10s
▸ ? plan api              approval-awaiting         2 to create, 1 to destroy; waits for an approval
  · apply api             pending                   waits for plan api
── plan api: 2 to create, 1 to destroy ─────────────────────────────────────────────────────────────
+ db.x[0] (create)
+ db.x[1] (create)
- db.x[2] (destroy)


a approve  d deny  A approve all  p plan  s skip  c cancel  q leave  ↑↓ select";
    assert_eq!(picture(&mut view, 100, 12), expected);
}

#[test]
fn no_size_is_too_small_and_no_text_too_long() {
    let mut view = shown();
    view.put_plan("sha256:p", &plan());
    for mode in ["", "p", "d", "é"] {
        for (width, height) in [(0, 0), (1, 1), (1, 40), (3, 2), (200, 1), (20, 5), (79, 9), (80, 10), (200, 60)] {
            let mut view = shown();
            view.put_plan("sha256:p", &plan());
            press(&mut view, mode);
            view.complain(&"long ".repeat(100));
            picture(&mut view, width, height);
        }
    }
    view.update(workflow("error", Vec::new()));
    picture(&mut view, 80, 24);
    picture(&mut View::new(true), 80, 24);
    let many = (0..500).map(|n| step(&format!("{n}"), &"名前 ".repeat(40), "pending", json!({}))).collect();
    view.update(workflow("in-progress", many));
    code(&mut view, KeyCode::End);
    assert!(picture(&mut view, 80, 24).contains('▸'));
}

#[test]
fn keys_answer_what_is_in_sight() {
    let mut view = shown();
    assert_eq!(press(&mut view, "a"), None, "the plan is still loading");
    assert!(picture(&mut view, 80, 12).contains("the plan is still loading"));
    assert_eq!(view.wanted_plan().map(|(_, approval)| approval), Some("sha256:p".into()));
    view.put_plan("sha256:p", &plan());
    assert_eq!(view.wanted_plan(), None);
    let answer = |response| Some(Wish::Answer { step: "3".into(), approval: "sha256:p".into(), response });
    assert_eq!(press(&mut view, "a"), answer("approve"));
    assert_eq!(press(&mut view, "d"), None, "it asks first");
    assert!(picture(&mut view, 80, 12).contains("deny the plan and end the workflow? y/N"));
    assert_eq!(press(&mut view, "n"), None);
    press(&mut view, "d");
    assert_eq!(code(&mut view, KeyCode::Enter), None, "Enter is a no");
    assert_eq!(press(&mut view, "dy"), answer("deny"));
    assert_eq!(press(&mut view, "sy"), answer("deny-skip-current"));
    assert_eq!(press(&mut view, "cy"), Some(Wish::Cancel));
    assert_eq!(press(&mut view, "Ay"), Some(Wish::ApproveAll));
    assert_eq!(press(&mut view, "r"), None);
    assert_eq!(press(&mut view, "q"), Some(Wish::Leave));
    // Another step is none that waits.
    code(&mut view, KeyCode::Up);
    assert_eq!(view.step().map(|step| step.name.as_str()), Some("apply db"));
    assert_eq!(press(&mut view, "a"), None);
    // It stays selected, until the person lets go.
    view.update(workflow("in-progress", some()));
    assert_eq!(view.step().map(|step| step.id.as_str()), Some("2"));
    code(&mut view, KeyCode::Esc);
    let mut next = some();
    next[1]["status"]["status"] = json!("success");
    view.update(workflow("in-progress", next));
    assert_eq!(view.step().map(|step| step.id.as_str()), Some("3"));
    // The plan changed meanwhile: what was seen can't be approved any more.
    let mut next = some();
    next[2]["approval"]["id"] = json!("sha256:q");
    view.update(workflow("in-progress", next));
    assert_eq!(press(&mut view, "a"), None);
    let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    assert_eq!((view.key(control('c')), view.key(control('z'))), (Some(Wish::Leave), Some(Wish::Stop)));
}

#[test]
fn approving_all_asks_first_and_says_how_many_wait() {
    let mut view = shown();
    assert_eq!(press(&mut view, "A"), None, "it asks first");
    assert!(picture(&mut view, 80, 12).ends_with("approve the waiting step and those to come? y/N"));
    for key in ["n", "q", "A", "a"] {
        assert_eq!(press(&mut view, key), None, "{key} is a no");
        assert!(!picture(&mut view, 80, 12).contains("y/N"), "{key} ends the question");
        assert_eq!(press(&mut view, "A"), None);
    }
    assert_eq!(press(&mut view, "y"), Some(Wish::ApproveAll));

    let mut steps = some();
    steps.push(awaiting("6", "plan web", "sha256:w"));
    view.update(workflow("in-progress", steps.clone()));
    press(&mut view, "A");
    assert!(picture(&mut view, 80, 12).ends_with("approve all 2 waiting steps and those to come? y/N"));
    // What comes meanwhile does not answer it.
    view.update(workflow("in-progress", steps));
    assert_eq!(press(&mut view, "y"), Some(Wish::ApproveAll));

    view.update(workflow("in-progress", vec![step("2", "apply db", "in-progress", json!({}))]));
    press(&mut view, "A");
    assert!(picture(&mut view, 80, 12).ends_with("approve all steps to come? y/N"));
}

#[test]
fn a_failed_step_can_be_tried_again() {
    let mut view = View::new(false);
    let failed = json!({ "retryable": true, "skippable": true });
    view.update(workflow(
        "error",
        vec![step("1", "apply db", "error", failed), step("2", "later", "not-attempted", json!({}))],
    ));
    assert_eq!(press(&mut view, "r"), Some(Wish::Retry { step: "1".into() }));
    assert_eq!(press(&mut view, "s"), Some(Wish::Skip { step: "1".into() }));
    assert_eq!(press(&mut view, "A"), None);
    let drawn = picture(&mut view, 80, 6);
    assert!(drawn.contains("it broke") && drawn.contains("✗ apply db"), "{drawn}");
}

#[test]
fn a_long_plan_is_scrolled() {
    let mut view = shown();
    let resources: Vec<Value> = (0..50).map(|n| json!({ "address": format!("r[{n}]"), "action": "update" })).collect();
    view.put_plan("sha256:p", &json!({ "resources": resources }));
    press(&mut view, "p");
    let drawn = picture(&mut view, 60, 8);
    assert!(drawn.contains("~ r[0] (update)") && drawn.contains("… 45 more; arrows scroll"), "{drawn}");
    code(&mut view, KeyCode::PageDown);
    assert!(picture(&mut view, 60, 8).contains("~ r[5] (update)"));
    code(&mut view, KeyCode::End);
    assert!(picture(&mut view, 60, 8).contains("~ r[49] (update)"));
    assert!(press(&mut view, "a").is_some(), "it is answered where it is read");
    press(&mut view, "p");
    assert!(picture(&mut view, 60, 12).contains("await runner healthy"));
    let denied = json!({ "verdicts": [{ "policy": "tags", "severity": "deny", "message": "no owner" }] });
    view.put_plan("sha256:p", &json!({ "resources": resources, "policies": denied }));
    assert!(picture(&mut view, 60, 16).contains("! policy tags: deny: no owner\n~ r[0] (update)"));
    view.put_plan("sha256:p", &json!({ "text": "of another form" }));
    assert!(picture(&mut view, 60, 16).contains("of another form"));
}

#[test]
fn the_log_of_a_step_is_shown_without_what_steers_the_terminal() {
    let mut view = shown();
    code(&mut view, KeyCode::Up);
    assert_eq!(view.wanted_log().map(|step| step.id.as_str()), Some("2"));
    view.begin_log("2");
    view.put_log("first\nsec");
    view.put_log("ond \u{1b}[31mred\u{1b}[0m\u{7}\nold\rnew\n");
    let drawn = picture(&mut view, 60, 14);
    assert!(drawn.contains("log of apply db\u{20}") && drawn.contains("\nfirst\nsecond red\nnew"), "{drawn}");
    for n in 0..LOG_LINES_MAX * 2 {
        view.put_log(&format!("line {n}\n"));
    }
    assert_eq!(view.log.len(), LOG_LINES_MAX);
    view.begin_log("3");
    assert!(view.log.is_empty());
}

#[test]
fn without_colour_there_is_none() {
    for (color, expected) in [(false, false), (true, true)] {
        let mut view = View::new(color);
        view.update(workflow("in-progress", some()));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 12));
        view.render(buffer.area, &mut buffer, now());
        assert_eq!(buffer.content.iter().any(|cell| cell.fg != Color::Reset), expected);
    }
}
