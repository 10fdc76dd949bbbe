(function () {
  "use strict";
  var data = document.body.dataset, address = data.status;
  var start = Date.now() - Number(data.elapsed || 0), expected = Number(data.expected || 0);
  var at = "", source, ticking, patience, over = false;

  function by(id) { return document.getElementById(id); }
  function say(id, text) { var e = by(id); if (e && e.textContent !== text) e.textContent = text; }
  function seconds(ms) { return (ms / 1000).toFixed(ms < 9950 ? 1 : 0) + " s"; }

  function end() {
    over = true;
    clearInterval(ticking);
    clearTimeout(patience);
    if (source) source.close();
  }

  // Should it come back to this page again and again, it stops.
  function tooOften() {
    try {
      var key = "rouse" + location.pathname, now = Date.now();
      var past = JSON.parse(sessionStorage.getItem(key) || "[]").filter(function (t) { return now - t < 30000; });
      past.push(now);
      sessionStorage.setItem(key, JSON.stringify(past));
      return past.length > 3;
    } catch (e) { return false; }
  }

  function reload() {
    if (over) return;
    end();
    if (tooOften()) {
      stop("It is awake, but this page came back several times.", "");
      return;
    }
    say("state", "It is awake. Loading.");
    location.reload();
  }

  function stop(title, detail, id) {
    end();
    say("title", title);
    say("detail", detail);
    if (id) say("request", id);
    document.title = title;
    document.querySelector("main").className = "over";
    if (by("wait")) by("wait").hidden = true;
    var again = by("again");
    if (!again) return;
    again.hidden = false;
    again.setAttribute("role", "alert");
    again.querySelector("a").focus();
  }

  function failed(problem) {
    stop(problem.title || "It could not be started", problem.detail || "", problem.request_id);
  }

  function show(p) {
    start = Date.now() - p.elapsed_ms;
    expected = p.expected_ms || 0;
    p.steps.forEach(function (step) {
      var item = document.querySelector('[data-step="' + step.name + '"]');
      if (!item) return;
      item.className = step.state;
      if (step.state === "now") item.setAttribute("aria-current", "step"); else item.removeAttribute("aria-current");
      item.querySelector(".took").textContent = step.state === "done" ? step.ms + " ms" : "";
      if (step.state === "now") at = step.label;
    });
    var more = [p.note, p.waiting > 1 ? "Number " + p.position + " of " + p.waiting + " who wait." : ""].join(" ").trim();
    say("state", more || at + ".");
    if (by("state")) by("state").classList.toggle("heard", !more); // the list says it to the eye
    tick();
  }

  function tick() {
    var elapsed = Date.now() - start, bar = by("bar");
    if (bar && expected > 0) bar.value = Math.min(.97, elapsed / expected);
    say("time", seconds(elapsed) + (expected > 0 ? " of about " + seconds(expected) : ""));
  }

  // The answer to each poll comes when the wait is over, or after a second.
  function poll() {
    if (over) return;
    fetch(address, { cache: "no-store", headers: { Accept: "application/json" } }).then(function (answer) {
      if (!answer.headers.has("Rouse-Waiting")) {
        if (answer.status < 500 || !/problem/.test(answer.headers.get("Content-Type"))) return reload();
        return answer.json().then(failed);
      }
      return answer.json().then(function (problem) {
        if (problem.progress) show(problem.progress);
        setTimeout(poll, Math.max(200, 1000 * Number(answer.headers.get("Retry-After"))));
      });
    }).catch(function () { setTimeout(poll, 2000); });
  }

  // A proxy that keeps events back has the page poll.
  function listen() {
    if (over) return;
    if (!window.EventSource) return poll();
    source = new EventSource(address);
    patience = setTimeout(giveUp, 3000);
    source.addEventListener("progress", function (e) { clearTimeout(patience); show(JSON.parse(e.data)); });
    source.addEventListener("ready", reload);
    source.addEventListener("failed", function (e) { failed(JSON.parse(e.data)); });
    source.onerror = function () { if (source.readyState === 2) giveUp(); };
  }

  function giveUp() {
    clearTimeout(patience);
    source.close();
    poll();
  }

  addEventListener("pageshow", function (e) { if (e.persisted) location.reload(); });
  ticking = setInterval(tick, 250);
  tick();
  listen();
})();
