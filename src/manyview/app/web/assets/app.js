"use strict";
(function () {
  // --- tables: each is sent as it is, one after the other; the server gives it a name of its own ---
  var drop = document.getElementById("drop"), said = document.getElementById("said");
  function send(file, kind) {
    var named = "name=" + encodeURIComponent(file.name), options = { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } };
    function heard(answer) { return answer.text().then(function (text) { if (!answer.ok) throw new Error(text); }); }
    return fetch(drop.dataset.here + "/room?size=" + file.size + "&kind=" + kind + "&" + named).then(heard)
      .then(function () { return fetch(drop.dataset.here + "/table?kind=" + kind + "&" + named, options); }).then(heard);
  }
  function sendAll(files, kind) {
    var list = [].slice.call(files), failed = [], next = Promise.resolve();
    list.forEach(function (file, i) {
      next = next.then(function () {
        said.textContent = "Reading " + file.name + " (" + (i + 1) + " of " + list.length + ") …";
        return send(file, kind).catch(function (error) {
          failed.push(error instanceof TypeError ? file.name + ": the connection was lost; is manyview app still running?" : error.message);
        });
      });
    });
    next.then(function () {
      if (failed.length) { said.textContent = failed.join(" "); if (failed.length === list.length) return; }
      if (failed.length) { window.setTimeout(function () { location.reload(); }, 6000); } else {
        said.textContent = "Reading the tables …"; location.reload();
      }
    });
  }
  if (drop) {
    var zone = document.getElementById("zone");
    document.getElementById("views").addEventListener("change", function () { sendAll(this.files, "view"); });
    ["clinical", "sets"].forEach(function (kind) {
      document.getElementById(kind).addEventListener("change", function () { sendAll(this.files, kind); });
    });
    // Everywhere on the page: a file dropped beside the zone must not replace the page.
    document.addEventListener("dragover", function (event) { event.preventDefault(); zone.classList.add("over"); });
    document.addEventListener("dragleave", function () { zone.classList.remove("over"); });
    document.addEventListener("drop", function (event) {
      event.preventDefault();
      zone.classList.remove("over");
      var files = [].slice.call(event.dataTransfer.files), at = event.target.closest("[for=clinical], #clinical") ? "clinical" : "view";
      function isSets(file) { return /\.gmt$/i.test(file.name); }
      if (files.some(isSets)) sendAll(files.filter(isSets).slice(0, 1), "sets");
      else if (files.length) sendAll(files, at);
    });
  }
  var number = document.querySelector("input[name=number]");
  if (number) number.addEventListener("input", function () { // who types a number means it
    document.querySelector("input[name=clusters][value=number]").checked = true;
  });
  document.querySelectorAll("form").forEach(function (form) {
    form.addEventListener("submit", function () { // a second click must not ask twice
      window.setTimeout(function () { form.querySelectorAll("button").forEach(function (b) { b.disabled = true; }); }, 0);
    });
  });

  // --- progress: asked for every second; the stages are text ---
  var progress = document.getElementById("progress"), lost = document.getElementById("lost");
  function ask() {
    fetch(progress.dataset.here + "/state").then(function (answer) {
      if (!answer.ok) { location.reload(); throw new Error("gone"); } // the page says what happened
      return answer.json();
    }).then(function (now) {
      lost.textContent = "";
      document.getElementById("since").textContent = now.seconds;
      if (now.state !== "running") { location.reload(); return; }
      var list = document.getElementById("stages"), stages = now.stages.length ? now.stages : ["starting"];
      while (list.children.length > stages.length) list.lastChild.remove();
      stages.forEach(function (text, i) {
        var item = list.children[i] || list.appendChild(document.createElement("li"));
        if (item.textContent !== text) item.textContent = text;
      });
      window.setTimeout(ask, 1000);
    }).catch(function () {
      lost.textContent = "The connection is lost. If manyview app is still running, this page continues by itself. If not, start it again; your tables are still there.";
      window.setTimeout(ask, 3000);
    });
  }
  if (progress) window.setTimeout(ask, 1000);
})();
