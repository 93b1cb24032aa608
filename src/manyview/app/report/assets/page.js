"use strict";
(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  var wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() { return (root.dataset.theme || (wantsDark.matches ? "dark" : "light")) === "dark"; }
  function label() { button.textContent = isDark() ? "Light page" : "Dark page"; }
  function all(selector, within) { return [].slice.call((within || document).querySelectorAll(selector)); }
  function element(name, attributes, text) {
    var svg = ["svg", "g", "circle", "text", "line", "rect"].indexOf(name) >= 0;
    var made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    Object.keys(attributes || {}).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // --- the map: a dot for each sample; color by what is known, hide groups, point, drag to select ---
  var RAMP = [[0, 34, 78], [66, 78, 107], [124, 123, 120], [187, 175, 113], [253, 234, 69]]; // cividis
  function shade(share) {
    var at = Math.max(0, Math.min(1, share)) * (RAMP.length - 1), i = Math.min(Math.floor(at), RAMP.length - 2);
    return "rgb(" + RAMP[i].map(function (from, c) { return Math.round(from + (at - i) * (RAMP[i + 1][c] - from)); }) + ")";
  }
  function shown(value, percent) { return percent ? Math.round(100 * value) + "%" : String(Number(value.toPrecision(4))); }
  function ScatterMap(plot) {
    var data = JSON.parse(plot.parentNode.querySelector("script").textContent), n = data.x.length;
    var margin = 40, high = Math.max.apply(null, data.y) + 2 * margin, size = n > 1500 ? 4.5 : n > 300 ? 6 : 8;
    var svg = element("svg", { viewBox: "0 0 " + (1000 + 2 * margin) + " " + high, role: "presentation" });
    var legend = element("div", { "class": "legend" }), tip = element("div", { "class": "tip", hidden: "" });
    var chosen = element("p", { "class": "chosen", role: "status" }, "Point at a dot for its name; drag to select samples.");
    var hidden = {}, by = data.by[0], picked = [], from = null, frame = null;
    var dots = data.x.map(function (x, i) {
      return svg.appendChild(element("circle", { cx: x + margin, cy: data.y[i] + margin, r: size, "fill-opacity": 0.8, "data-i": i }));
    });
    data.labels.forEach(function (at) {
      svg.appendChild(element("line", { x1: at.px + margin, y1: at.py + margin, x2: at.x + margin, y2: at.y + margin, stroke: "currentColor", "stroke-opacity": 0.6 }));
      svg.appendChild(element("text", { x: at.x + margin, y: at.y + margin, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 30,
        "font-weight": 700, "font-family": "sans-serif", fill: "currentColor", stroke: "var(--paper, #fff)", "stroke-width": 7, "paint-order": "stroke", "pointer-events": "none" }, at.text));
    });
    function place(event) {
      var box = svg.getBoundingClientRect(), scale = (1000 + 2 * margin) / box.width;
      return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
    }
    function word(i) { // what the coloring says of a sample
      if (by.values) return by.values[i] === null ? "not known" : shown(by.values[i], by.percent);
      return by.names[by.groups[i]];
    }
    function paint() {
      var known = (by.values || []).filter(function (v) { return v !== null; });
      var low = Math.min.apply(null, known), top = Math.max.apply(null, known);
      dots.forEach(function (dot, i) {
        var color = by.values ? (by.values[i] === null ? "#d5d5d5" : shade((by.values[i] - low) / (top - low || 1))) : by.colors[by.groups[i]];
        dot.setAttribute("fill", color);
        dot.style.display = !by.values && hidden[by.groups[i]] ? "none" : "";
        dot.setAttribute("fill-opacity", picked.length && picked.indexOf(i) < 0 ? 0.15 : 0.8);
      });
      legend.textContent = "";
      if (by.values) {
        var ramp = legend.appendChild(element("div", { "class": "ramp" })), ends = legend.appendChild(element("div", { "class": "ends" }));
        ramp.style.background = "linear-gradient(90deg," + RAMP.map(function (c) { return "rgb(" + c + ")"; }) + ")";
        ends.appendChild(element("span", {}, shown(low, by.percent)));
        ends.appendChild(element("span", {}, shown(top, by.percent)));
        return;
      }
      by.names.forEach(function (name, k) {
        var count = by.groups.filter(function (g) { return g === k; }).length;
        var key = legend.appendChild(element("button", { type: "button", "aria-pressed": !hidden[k] })), mark = key.appendChild(element("i"));
        mark.style.background = by.colors[k];
        key.appendChild(element("span", {}, name + " (" + count + ")"));
        key.addEventListener("click", function () { hidden[k] = !hidden[k]; paint(); });
      });
    }
    function select(rows) {
      picked = rows;
      chosen.textContent = rows.length ? rows.length + " samples selected: " + rows.slice(0, 6).map(function (i) { return data.ids[i]; }).join(", ") + (rows.length > 6 ? ", … " : " ") : "Point at a dot for its name; drag to select samples.";
      if (rows.length) {
        var saved = chosen.appendChild(element("button", { type: "button", "class": "small" }, "Save their ids"));
        saved.addEventListener("click", function () {
          saveCsv({ columns: ["id", "cluster"], rows: rows.map(function (i) { return [data.ids[i], data.clusters[i]]; }) }, "selected");
        });
        var clear = chosen.appendChild(element("button", { type: "button", "class": "small" }, "Clear"));
        clear.addEventListener("click", function () { select([]); });
      }
      paint();
    }
    svg.addEventListener("pointerdown", function (event) {
      if (event.pointerType !== "mouse" || event.button) return; // fingers scroll the page
      event.preventDefault();
      from = place(event);
      frame = svg.appendChild(element("rect", { fill: "currentColor", "fill-opacity": 0.08, stroke: "currentColor" }));
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", function (event) {
      var here = place(event);
      if (from) {
        frame.setAttribute("x", Math.min(from.x, here.x)); frame.setAttribute("y", Math.min(from.y, here.y));
        frame.setAttribute("width", Math.abs(from.x - here.x)); frame.setAttribute("height", Math.abs(from.y - here.y));
        return;
      }
      var best = -1, nearest = 400;
      data.x.forEach(function (x, i) {
        var d = Math.pow(x + margin - here.x, 2) + Math.pow(data.y[i] + margin - here.y, 2);
        if (d < nearest && dots[i].style.display !== "none") { nearest = d; best = i; }
      });
      tip.hidden = best < 0;
      if (best < 0) return;
      var sure = data.confidence[best];
      tip.textContent = data.ids[best] + " · cluster " + data.names[data.clusters[best]] + ", confidence " + (sure === null ? "unknown" : Math.round(100 * sure) + "%") +
        (by === data.by[0] ? "" : " · " + by.name + ": " + word(best));
      var box = plot.getBoundingClientRect();
      tip.style.left = Math.min(event.clientX - box.left + 12, box.width - 190) + "px";
      tip.style.top = event.clientY - box.top + 14 + "px";
    });
    svg.addEventListener("pointerleave", function () { tip.hidden = true; });
    svg.addEventListener("pointerup", function (event) {
      if (!from) return;
      var here = place(event), x = [Math.min(from.x, here.x), Math.max(from.x, here.x)], y = [Math.min(from.y, here.y), Math.max(from.y, here.y)];
      frame.remove();
      from = null;
      var rows = [];
      if (x[1] - x[0] > 4) data.x.forEach(function (px, i) {
        px += margin; var py = data.y[i] + margin;
        if (px >= x[0] && px <= x[1] && py >= y[0] && py <= y[1] && dots[i].style.display !== "none") rows.push(i);
      });
      select(rows);
    });
    [svg, legend, tip, chosen].forEach(function (part) { plot.appendChild(part); });
    this.color = function (choice) { by = data.by[choice]; hidden = {}; paint(); };
    this.table = function () {
      return { columns: ["id", "x", "y", "cluster", "confidence"].concat(data.by.slice(1).map(function (b) { return b.name; })), rows: data.ids.map(function (id, i) {
        return [id, data.x[i], data.y[i], data.clusters[i], data.confidence[i]].concat(data.by.slice(1).map(function (b) { return b.values ? b.values[i] : b.names[b.groups[i]]; }));
      }) };
    };
    paint();
  }

  // --- figures as files: always black on white, whatever the page looks like ---
  function boxOf(figure) { // a chart's points are 4/3 pixels
    var box = figure.querySelector("svg").viewBox.baseVal, scale = figure.matches(".chart") ? 4 / 3 : 0.8;
    return { width: Math.ceil(box.width * scale), height: Math.ceil(box.height * scale) };
  }
  function image(figure, kind) {
    var svg = figure.querySelector("svg").cloneNode(true), box = boxOf(figure);
    svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    svg.setAttribute("style", "color: #000; background: #fff");
    svg.setAttribute("width", box.width);
    svg.setAttribute("height", box.height);
    var address = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(svg));
    if (kind === "svg") return Promise.resolve(address);
    return new Promise(function (done, failed) {
      var picture = new Image();
      picture.onerror = failed;
      picture.onload = function () {
        var canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
        canvas.width = 3 * box.width;
        canvas.height = 3 * box.height;
        pen.fillStyle = "#fff";
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
        done(canvas.toDataURL("image/png"));
      };
      picture.src = address;
    });
  }
  function saveFigure(figure, kind) {
    if (kind === "pdf") { leaveOnly(figure); return window.print(); }
    return image(figure, kind).then(function (address) { download(address, figure.dataset.name + "." + kind); });
  }
  // Browsers make the best PDF themselves: a page as large as the figure, and nothing else on it.
  var alone = null;
  function leaveOnly(figure) {
    var sheet = document.createElement("style"), title = document.title, box = boxOf(figure);
    sheet.textContent = "@page { size: " + (box.width + 24) + "px " + (box.height + 24) + "px; margin: 0 }";
    document.head.appendChild(sheet);
    document.title = figure.dataset.name;
    figure.parentNode.classList.add("alone");
    root.classList.add("one-figure");
    alone = function () {
      sheet.remove();
      document.title = title;
      figure.parentNode.classList.remove("alone");
      root.classList.remove("one-figure");
      alone = null;
    };
  }

  // --- tables: sort by a pressed heading, empty cells last; save everything as CSV ---
  function sortBy(head) {
    var row = head.parentNode, column = [].indexOf.call(row.children, head);
    var body = head.closest("table").tBodies[0], rows = [].slice.call(body.rows);
    var first = head.dataset.first, other = first === "ascending" ? "descending" : "ascending";
    var way = head.getAttribute("aria-sort") === first ? other : first;
    [].forEach.call(row.children, function (h) { h.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", way);
    rows.sort(function (a, b) {
      var x = a.cells[column].dataset.value, y = b.cells[column].dataset.value;
      if (x === "" || y === "") return (x === "") - (y === "");
      var order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return way === "ascending" ? order : -order;
    });
    rows.forEach(function (r) { body.appendChild(r); });
  }
  function csv(table) {
    function cell(value) {
      var text = value === null ? "" : String(value);
      // A spreadsheet would run it: the same rule as for the files.
      var number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
      if (typeof value === "string" && /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && !number.test(text)) text = "'" + text;
      return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
    }
    return [table.columns].concat(table.rows).map(function (row) { return row.map(cell).join(","); }).join("\n") + "\n";
  }
  function saveCsv(table, name) {
    var address = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    download(address, name + ".csv");
    setTimeout(function () { URL.revokeObjectURL(address); }, 1000);
  }
  function download(address, name) {
    var link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  }
  function copy(b) {
    var text = b.closest(".copied").querySelector(".text");
    getSelection().selectAllChildren(text);
    var done = navigator.clipboard ? navigator.clipboard.writeText(text.innerText) : Promise.reject();
    done.catch(function () { return document.execCommand("copy") ? 0 : Promise.reject(); }).then(
      function () { b.textContent = "Copied"; }, function () { b.textContent = "Marked: press Ctrl+C"; });
  }

  all("table.sortable thead button").forEach(function (b) {
    b.addEventListener("click", function () { sortBy(b.closest("th")); });
  });
  all("button.csv").forEach(function (b) {
    var holder = b.closest(".table");
    b.hidden = false;
    b.addEventListener("click", function () { saveCsv(JSON.parse(holder.querySelector("script").textContent), holder.dataset.name); });
  });
  all("button.copy").forEach(function (b) {
    b.hidden = false;
    b.addEventListener("click", function () { copy(b); });
  });
  all(".plot, .chart").forEach(function (figure) {
    var holder = figure.parentNode, box = holder.querySelector(".switch"), saving = holder.querySelector(".saving");
    var map = figure.matches(".plot") ? new ScatterMap(figure) : null;
    if (box) {
      box.hidden = false;
      box.querySelector("select").addEventListener("change", function (e) { map.color(Number(e.target.value)); });
    }
    saving.hidden = false;
    all("button", saving).forEach(function (b) {
      b.addEventListener("click", function () {
        if (b.dataset.kind) return saveFigure(figure, b.dataset.kind);
        var table = document.querySelector('script[data-table="' + b.dataset.csv + '"]');
        saveCsv(map ? map.table() : JSON.parse(table.textContent), b.dataset.csv);
      });
    });
  });
  // The sidebar says where the reader is.
  var links = all("nav a[href^='#']");
  if (links.length && window.IntersectionObserver) {
    var seen = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting) links.forEach(function (a) { a.classList.toggle("here", a.hash === "#" + entry.target.id); });
      });
    }, { rootMargin: "-10% 0px -80% 0px" });
    links.forEach(function (a) { var goal = document.getElementById(a.hash.slice(1)); if (goal) seen.observe(goal); });
  }
  button.hidden = false;
  button.addEventListener("click", function () { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  wantsDark.addEventListener("change", label);
  var before;
  window.addEventListener("beforeprint", function () {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    all("details:not(.long)").forEach(function (d) { d.open = true; });
  });
  window.addEventListener("afterprint", function () {
    if (alone) alone();
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
  });
  label();
  root.dataset.drawn = all(".plot").length; // for whoever waits for the page to be whole
  window.manyview = { image: image, leaveOnly: leaveOnly, ready: Promise.resolve() }; // for tests of the page
})();
