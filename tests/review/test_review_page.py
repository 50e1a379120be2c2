"""The review as a person has it: real Chromium, keys and clicks, a real server behind."""

import re
import signal

import pytest
from made import CLASSES
from playwright.sync_api import expect
from serving import served, start

import labelmend
from labelmend.review.apply import apply
from labelmend.review.decisions import CANNOT_TELL, DECIDED, FILE, OPEN, SKIPPED, Subject, read_log
from labelmend.storage.run_folder import read_run


@pytest.fixture
def opened(page, server):
    """The page with the first sample shown."""
    page.goto(server.link)
    at(page, 0)
    return page


def at(page, sample):
    """Wait until a sample is shown; a pattern for any of several."""
    expect(page).to_have_url(re.compile(f"#{sample}$"))
    expect(page.locator("[data-action=accept]")).to_be_visible()


def said(page, text):
    expect(page.locator("#said")).to_contain_text(text)


def standing(run):
    return read_log(run / FILE, Subject.of(read_run(run)))


def test_the_whole_flow_by_keyboard(opened, run):
    page, keys = opened, opened.keyboard
    suggested = read_run(run).corrected_codes
    given = read_run(run).given.codes
    keys.press("a")
    said(page, f"Saved: {CLASSES[suggested[0]]}.")
    at(page, 1)
    keys.press("k")
    at(page, 2)
    keys.press("r")
    at(page, 3)
    keys.press("c")
    expect(page.get_by_role("combobox")).to_be_focused()
    keys.type("hen")
    keys.press("Enter")
    at(page, 4)
    keys.press("t")
    said(page, "Saved: cannot tell.")
    at(page, 5)
    keys.press("s")
    said(page, "Skipped")
    at(page, 6)
    keys.press("Enter")
    at(page, 7)
    found = standing(run)
    assert found.state[:8].tolist() == [DECIDED] * 4 + [CANNOT_TELL, SKIPPED, DECIDED, OPEN]
    assert found.code[:4].tolist() == [suggested[0], given[1], (suggested[2] + 1) % 3, 2]
    assert found.code[6] == suggested[6]
    expect(page.locator("#done")).to_have_text("6")
    expect(page.locator("#counts")).to_contain_text("of 24 decided")
    assert page.errors == []
    assert all(url.startswith(f"http://{page.url.split('/')[2]}/") for url in page.requests)


def test_the_sample_is_shown_with_all_its_evidence(opened, run):
    page, result = opened, read_run(run)
    opened.keyboard.press("ArrowRight")
    at(page, 1)
    facts = page.locator(".facts")
    expect(facts.locator(".labels")).to_contain_text(CLASSES[result.corrected_codes[1]])
    expect(facts.locator(".labels")).to_contain_text("32 %")
    expect(facts.locator(".votes li")).to_have_count(2)
    expect(facts.locator(".reasons")).to_contain_text("below 85 % a person should look")
    expect(page.locator(".neighbors li")).to_have_count(4)
    expect(page.locator("figcaption")).to_have_text(result.ids[1])
    loaded = "() => [...document.querySelectorAll('#single img')].every((i) => i.complete && i.naturalWidth)"
    page.wait_for_function(loaded)
    assert page.locator("#single img").count() == 5


def test_the_token_does_not_stay_in_the_address(opened):
    assert "token" not in opened.url


def test_undo_step_by_step(opened, run):
    page, keys = opened, opened.keyboard
    for sample in (1, 2):
        keys.press("a")
        at(page, sample)
    keys.press("u")
    at(page, 1)
    said(page, "Undone.")
    keys.press("Control+z")
    at(page, 0)
    assert (standing(run).state == OPEN).all()
    keys.press("u")
    said(page, "There is nothing to undo.")
    keys.press("k")
    at(page, 1)
    assert standing(run).state[0] == DECIDED


def test_looking_back_after_undo_goes_to_the_sample_before(opened):
    page, keys = opened, opened.keyboard
    for sample in (1, 2):
        keys.press("a")
        at(page, sample)
    keys.press("u")
    at(page, 1)
    keys.press("ArrowLeft")
    at(page, 0)
    expect(page.locator(".banner")).to_contain_text("You decided")
    keys.press("ArrowRight")
    at(page, 1)
    keys.press("ArrowRight")
    at(page, 2)


def test_arrows_look_around_and_decide_nothing(opened, run):
    page, keys = opened, opened.keyboard
    keys.press("ArrowRight")
    at(page, 1)
    keys.press("ArrowRight")
    at(page, 2)
    keys.press("ArrowLeft")
    at(page, 1)
    keys.press("ArrowLeft")
    at(page, 0)
    keys.press("ArrowLeft")
    said(page, "first sample")
    assert standing(run).last == 0


def test_what_was_decided_can_be_decided_again_knowingly(opened, run):
    page, keys = opened, opened.keyboard
    keys.press("t")
    at(page, 1)
    keys.press("ArrowLeft")
    at(page, 0)
    expect(page.locator(".banner")).to_contain_text("You decided: cannot tell")
    keys.press("k")
    at(page, 1)
    assert standing(run).state[0] == DECIDED


def test_a_batch_with_exceptions(opened, run):
    page, keys = opened, opened.keyboard
    keys.press("b")
    expect(page.locator(".tile").first).to_be_focused()
    count = page.locator(".tile").count()
    assert count >= 3
    keys.press("ArrowRight")
    keys.press("Space")
    expect(page.locator(".tile").nth(1)).to_have_attribute("aria-pressed", "true")
    page.locator(".tile").nth(2).click()
    expect(page.locator("#accept-all")).to_contain_text(str(count - 2))
    keys.press("Enter")
    said(page, f"Saved: {count - 2} decisions.")
    found = standing(run)
    assert (found.state == DECIDED).sum() == count - 2
    suggested = read_run(run).corrected_codes
    assert (found.code[found.state == DECIDED] == suggested[found.state == DECIDED]).all()
    keys.press("u")
    said(page, f"Undone: {count - 2} decisions.")
    assert (standing(run).state == OPEN).all()
    keys.press("Escape")
    at(page, r"\d+")  # whichever comes first now
    assert page.errors == []


def test_exceptions_of_a_batch_may_keep_their_labels(opened, run):
    page, result = opened, read_run(run)
    page.keyboard.press("b")
    differing = page.locator("#pair option", has_text="→").first.get_attribute("value")
    page.select_option("#pair", differing)
    given, suggested = map(int, differing.split(","))
    expect(page.locator("#batch-says")).to_contain_text(CLASSES[suggested])
    page.locator(".tile").first.click()
    page.select_option("#exceptions", "keep")
    page.locator("#accept-all").click()
    said(page, "Saved:")
    found = standing(run)
    decided = found.state == DECIDED
    assert set(result.given.codes[decided].tolist()) == {given}
    assert sorted(set(found.code[decided].tolist())) == sorted({given, suggested})
    assert (found.code[decided] == given).sum() == 1


def test_a_reload_in_the_middle_goes_on(opened, run):
    page, keys = opened, opened.keyboard
    keys.press("a")
    at(page, 1)
    keys.press("a")
    at(page, 2)
    page.reload()
    at(page, 2)
    expect(page.locator("#done")).to_have_text("2")
    keys.press("u")
    at(page, 1)
    keys.press("k")
    at(page, 2)
    assert standing(run).state[:3].tolist() == [DECIDED, DECIDED, OPEN]
    assert page.errors == []


def test_a_fresh_browser_goes_on_where_the_other_was_killed(opened, server, browser):
    opened.keyboard.press("a")
    at(opened, 1)
    cookies = opened.context.cookies()
    opened.context.close()  # as suddenly as a kill: nothing is said to the page
    with_cookie = browser.new_context()
    with_cookie.add_cookies(cookies)
    page = with_cookie.new_page()
    page.goto(server.link.partition("?")[0])
    at(page, 1)
    expect(page.locator("#done")).to_have_text("1")
    with_cookie.close()


@pytest.mark.slow
def test_killed_with_9_and_started_again(page, run):
    process, link = start(run)
    page.goto(link)
    at(page, 0)
    page.keyboard.press("a")
    at(page, 1)
    page.keyboard.press("t")
    at(page, 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    page.keyboard.press("a")
    expect(page.locator("#trouble")).to_contain_text("Not saved yet")
    assert standing(run).last == 2
    process, link = start(run, "--port", link.split(":")[2].split("/")[0])
    try:
        expect(page.locator("#trouble")).to_contain_text("restarted")
        page.goto(link)
        at(page, 2)
        expect(page.locator("#done")).to_have_text("2")
        page.keyboard.press("a")
        at(page, 3)
        assert standing(run).state[:4].tolist() == [DECIDED, CANNOT_TELL, DECIDED, OPEN]
    finally:
        process.send_signal(signal.SIGTERM)
        assert "3 decided" in process.communicate(timeout=10)[0]


def test_a_lost_answer_is_asked_for_again_and_written_once(opened, run, server):
    """The server writes and dies before it answers; the page asks again with the same request."""
    lost = []

    def lose(route):
        if lost:
            route.continue_()
            return
        lost.append(route.fetch())
        route.abort()

    opened.route("**/api/decide*", lose)
    opened.keyboard.press("a")
    at(opened, 1)
    assert len(lost) == 1
    assert standing(run).last == 1
    assert read_run(run).corrected_codes[0] == standing(run).code[0]


def test_two_tabs_do_not_fight(opened, run, context):
    one, two = opened, context.new_page()
    two.goto(one.url.partition("#")[0])
    at(two, 0)
    one.keyboard.press("k")
    at(one, 1)
    expect(two.locator(".banner")).to_contain_text("Decided already")
    said(two, "In another tab:")
    two.keyboard.press("ArrowRight")
    at(two, 1)
    two.keyboard.press("t")
    at(two, 2)
    expect(one.locator(".banner")).to_contain_text("Decided already: cannot tell")
    one.keyboard.press("u")
    at(one, 0)
    assert standing(run).state[:3].tolist() == [OPEN, CANNOT_TELL, OPEN]


def test_what_another_tab_decided_is_passed_over(opened, context):
    one, two = opened, context.new_page()
    two.goto(f"{one.url.partition('#')[0]}#1")
    at(two, 1)
    two.keyboard.press("a")
    at(two, 2)
    expect(one.locator("#done")).to_have_text("1")
    one.keyboard.press("a")
    at(one, 2)


def test_decided_ones_can_be_gone_through_again(opened):
    page = opened
    for sample in (1, 2, 3):
        page.keyboard.press("a")
        at(page, sample)
    page.goto(f"{page.url.partition('#')[0]}?state=decided")
    at(page, 0)
    for sample in (1, 2):
        page.keyboard.press("ArrowRight")
        at(page, sample)
    expect(page.locator(".banner")).to_contain_text("Decided already")


def test_a_decision_the_page_has_not_seen_is_not_overwritten(opened, run, server):
    server.desk.decide({"tab": "elsewhere"}, {"request": "x", "choices": [
        {"sample": 0, "kind": "label", "label": 2, "seen": 0}]})  # fmt: skip
    opened.keyboard.press("t")
    said(opened, "Not saved: another tab decided fox & <b>hen meanwhile")
    at(opened, 0)
    assert standing(run).code[0] == 2
    opened.keyboard.press("t")
    at(opened, 1)
    assert standing(run).state[0] == CANNOT_TELL


def test_filters_change_the_queue_and_survive_a_reload(opened, run):
    page = opened
    page.keyboard.press("f")
    expect(page.get_by_label("Status")).to_be_focused()
    page.get_by_label("Status").select_option("corrected")
    expect(page.locator("#counts")).to_contain_text("of 4 decided")
    at(page, 24)
    page.reload()
    at(page, 24)
    expect(page.locator("#counts")).to_contain_text("of 4 decided")
    page.keyboard.press("f")
    page.get_by_role("button", name="Reset").click()
    at(page, 0)
    expect(page.locator("#counts")).to_contain_text("of 24 decided")


def test_the_end_is_told_and_then_labels_are_merged(opened, run):
    page = opened
    for sample in range(24):
        at(page, sample)
        page.keyboard.press("a")
    expect(page.locator(".done")).to_contain_text("labelmend apply run")
    expect(page.locator("#gain")).to_contain_text("0 left to gain")
    apply(run)
    assert labelmend.load(run).count("reviewed") == 24
    page.keyboard.press("u")
    at(page, 23)


def test_what_is_put_off_comes_again_at_the_end(opened, run):
    page = opened
    page.keyboard.press("s")
    for sample in range(1, 24):
        at(page, sample)
        page.keyboard.press("a")
    at(page, 0)
    page.keyboard.press("a")
    expect(page.locator(".done")).to_be_visible()


def test_zoom_and_help_open_and_close_by_key(opened):
    page, keys = opened, opened.keyboard
    keys.press("z")
    image = page.locator("#zoom img")
    expect(image).to_be_visible()
    before = image.bounding_box()["width"]
    keys.press("+")
    assert image.bounding_box()["width"] > 1.4 * before
    keys.press("0")
    assert image.bounding_box()["width"] == pytest.approx(before)
    keys.press("Escape")
    expect(image).to_have_count(0)
    keys.press("?")
    expect(page.locator("#help")).to_be_visible()
    keys.press("a")  # decides nothing while the help is open
    keys.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    at(page, 0)


def test_single_keys_can_be_turned_off(opened, run):
    opened.keyboard.press("?")
    opened.locator("#keys-on").uncheck()
    opened.get_by_role("button", name="Close").click()
    opened.keyboard.press("a")
    opened.locator("[data-action=unsure]").click()
    at(opened, 1)
    assert standing(run).last == 1
    assert standing(run).state[0] == CANNOT_TELL


def test_a_key_held_down_decides_once(opened, run):
    opened.keyboard.down("a")
    at(opened, 1)
    for _ in range(3):
        opened.keyboard.down("a")  # what a keyboard sends while a key is held
    opened.keyboard.up("a")
    opened.keyboard.press("t")
    at(opened, 2)
    assert standing(run).last == 2


def test_focus_stays_at_the_button_that_was_used(opened):
    opened.locator("[data-action=unsure]").focus()
    opened.keyboard.press("Enter")
    at(opened, 1)
    expect(opened.locator("[data-action=unsure]")).to_be_focused()


def test_names_from_the_data_stay_text(opened):
    opened.keyboard.press("c")
    expect(opened.locator("#choices")).to_contain_text("<b>hen")
    assert opened.locator("#choices b").count() == 0
    assert opened.errors == []


def test_rows_of_a_table_are_shown_beside_their_neighbours(page, rows_run):
    with served(rows_run) as server:
        page.goto(server.link)
        at(page, 0)
        page.keyboard.press("ArrowRight")
        at(page, 1)
        row = page.locator(".rows tbody tr", has_text="width")
        expect(row.locator("td")).to_have_text(["1.5", "2.5", "3.5", "4.5"])
        page.keyboard.press("b")
        expect(page.locator(".tile").first).to_contain_text("width")
        assert page.errors == []


def test_without_originals_the_evidence_is_still_there(page, bare_run):
    with served(bare_run) as server:
        page.goto(server.link)
        at(page, 0)
        expect(page.locator(".nothing")).to_contain_text("given as arrays")
        page.keyboard.press("a")
        at(page, 1)
        assert page.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, axe, scheme):
    page = opened
    page.emulate_media(color_scheme=scheme)
    page.keyboard.press("a")
    at(page, 1)
    said(page, "Saved")
    assert axe(page) == []
    page.keyboard.press("f")
    expect(page.get_by_label("Status")).to_be_visible()
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(page.locator("#picker")).to_be_visible()
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    expect(page.locator(".tile").first).to_be_focused()
    page.keyboard.press("Space")
    assert axe(page) == []


def test_axe_finds_nothing_serious_in_rows(page, rows_run, axe):
    with served(rows_run) as server:
        page.goto(server.link)
        at(page, 0)
        assert axe(page) == []
        page.keyboard.press("b")
        expect(page.locator(".tile").first).to_be_focused()
        assert axe(page) == []


def test_a_phone_has_room_for_everything(browser, server):
    phone = browser.new_context(viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True)
    page = phone.new_page()
    page.goto(server.link)
    at(page, 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    for action in ("accept", "another", "unsure", "skip"):
        box = page.locator(f"[data-action={action}]").bounding_box()
        assert box["y"] + box["height"] <= 700
        assert box["height"] >= 40
    page.locator("[data-action=accept]").tap()
    at(page, 1)
    phone.close()


def test_a_decision_is_one_request_and_the_next_sample_is_there_already(opened):
    """What makes deciding quick: the next sample and its picture were fetched ahead, and nothing is asked for twice."""
    opened.wait_for_load_state("networkidle")
    for sample in range(1, 4):
        before = len(opened.requests)
        opened.keyboard.press("a")
        at(opened, sample)
        opened.wait_for_load_state("networkidle")
        sent = [url.partition("?")[0].split("/", 3)[3] for url in opened.requests[before:]]
        assert sent.count("api/decide") == 1
        assert f"api/sample/{sample}" not in sent
        assert f"picture/large/{sample}" not in sent
