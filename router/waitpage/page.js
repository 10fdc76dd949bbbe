(function () {
  "use strict";
  var address = document.body.dataset.status;
  var state = document.getElementById("state");
  var began = Date.now();
  var over = false;
  function reload() {
    if (over) return;
    over = true;
    location.reload();
  }
  function later(seconds) {
    setTimeout(ask, Math.max(0.5, seconds || 0) * 1000);
  }
  // Each ask is answered when the wait is over, or after a while with "not yet".
  function ask() {
    fetch(address, { cache: "no-store", headers: { Accept: "application/json" } }).then(function (answer) {
      if (answer.headers.has("Rouse-Waiting")) later(Number(answer.headers.get("Retry-After")));
      else reload();
    }, function () { later(2); });
  }
  setInterval(function () {
    if (!over) state.textContent = "Waiting for " + Math.round((Date.now() - began) / 1000) + " s";
  }, 1000);
  ask();
})();
