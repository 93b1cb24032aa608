"use strict";
(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  var wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() { return (root.dataset.theme || (wantsDark.matches ? "dark" : "light")) === "dark"; }
  function label() { button.textContent = isDark() ? "Light page" : "Dark page"; }

  // --- figures: data and layout come as JSON; colours of text and grid come from the sheet ---
  var plots = [].slice.call(document.querySelectorAll(".plot"));
  function read(plot) { return JSON.parse(plot.parentNode.querySelector("script").textContent); }
  // The same points in several colourings: traces name rows of the points.
  function dataOf(plot, figure) {
    if (!figure.choices) return figure.data;
    var points = figure.choices.points, by = figure.choices.by[Number(plot.dataset.choice || 0)];
    return by.traces.map(function (part) {
      function pick(column) { return part.rows.map(function (i) { return column[i]; }); }
      var trace = Object.assign({}, figure.choices.trace, part.trace);
      trace.marker = Object.assign({}, figure.choices.trace.marker, part.trace.marker);
      trace.x = pick(points.x);
      trace.y = pick(points.y);
      var words = pick(points.text);
      trace.text = part.words ? words.map(function (w, i) { return w + "<br>" + part.words[i]; }) : words;
      return trace;
    });
  }
  function template() {
    var sheet = getComputedStyle(root);
    function color(name) { return sheet.getPropertyValue("--" + name).trim(); }
    var axis = { gridcolor: color("line"), linecolor: color("line"), zerolinecolor: color("line"), automargin: true };
    return { layout: { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("ink"), family: getComputedStyle(document.body).fontFamily, size: 12 },
      xaxis: axis, yaxis: axis, annotationdefaults: { bgcolor: color("paper"), opacity: 0.85, borderpad: 1 }, hoverlabel: { align: "left", namelength: -1,
        bgcolor: color("paper"), bordercolor: color("faint"), font: { color: color("ink") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: color("faint"), activecolor: color("link") } } };
  }
  // On paper a figure cannot ask how wide its place is: A4 and Letter have room for 680 pixels.
  var printing = false;
  function paperWidth(plot) {
    var beside = plot.closest(".panels, .pair") && !plot.parentNode.matches(":only-child");
    return beside ? 335 : 680;
  }
  function widthOf(plot) { return printing ? paperWidth(plot) : plot.clientWidth; }
  function layoutOf(plot, figure) {
    var layout = Object.assign({ margin: { l: 10, r: 10, t: 30, b: 40 } }, figure.layout);
    layout.height = Number(plot.dataset.height);
    if (printing) layout.width = alone ? alone.width : paperWidth(plot);
    layout.template = template();
    if (window.matchMedia("(pointer: coarse)").matches) layout.dragmode = false; // fingers scroll the page
    if (widthOf(plot) < 560 && layout.showlegend !== false) {
      layout.legend = Object.assign({}, layout.legend, { orientation: "h", title: { text: "" }, x: 0, xanchor: "left", y: -0.15, yanchor: "top" });
    }
    return layout;
  }
  function draw(some) {
    (some || plots).forEach(function (plot) {
      var figure = read(plot);
      Plotly.react(plot, dataOf(plot, figure), layoutOf(plot, figure), { responsive: true, displaylogo: false,
        displayModeBar: plot.clientWidth < 560 ? false : "hover",
        modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]] });
    });
  }

  // --- figures as files: always black on white, whatever the page looks like ---
  var alone = null;
  function exportWidth(plot) {
    if (plot.matches(".chart")) return boxOf(plot).width;
    return Math.max(480, Math.min(plot.clientWidth || 800, 1100));
  }
  function boxOf(chart) { // points are 4/3 pixels
    var box = chart.querySelector("svg").viewBox.baseVal;
    return { width: Math.ceil(box.width * 4 / 3), height: Math.ceil(box.height * 4 / 3) };
  }
  function chartImage(chart, kind) {
    var svg = chart.querySelector("svg").cloneNode(true), box = boxOf(chart);
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
        canvas.width = 4 * box.width;
        canvas.height = 4 * box.height;
        pen.fillStyle = "#fff";
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
        done(canvas.toDataURL("image/png"));
      };
      picture.src = address;
    });
  }
  function onWhite(work) {
    var before = root.dataset.theme;
    root.dataset.theme = "light";
    try { return work(); } finally { if (before) root.dataset.theme = before; else delete root.dataset.theme; }
  }
  function image(plot, kind) {
    if (plot.matches(".chart")) return chartImage(plot, kind);
    var figure = read(plot), width = exportWidth(plot);
    var layout = onWhite(function () { return layoutOf(plot, figure); });
    layout.paper_bgcolor = "#ffffff";
    if (!layout.plot_bgcolor) layout.plot_bgcolor = "#ffffff";
    if (!layout.title) layout.title = { text: "" };
    return Plotly.toImage({ data: dataOf(plot, figure), layout: layout },
      { format: kind, width: width, height: layout.height, scale: kind === "png" ? 4 : 1 });
  }
  function saveFigure(plot, kind) {
    if (kind === "pdf") return printAlone(plot);
    return image(plot, kind).then(function (address) { download(address, plot.dataset.name + "." + kind); });
  }
  // Browsers make the best PDF themselves: a page as large as the figure, and nothing else on it.
  function printAlone(plot) {
    leaveOnly(plot);
    window.print();
  }
  function leaveOnly(plot) {
    var sheet = document.createElement("style"), title = document.title;
    var width = exportWidth(plot), height = Number(plot.dataset.height) || boxOf(plot).height;
    sheet.textContent = "@page { size: " + (width + 24) + "px " + (height + 24) + "px; margin: 0 }";
    document.head.appendChild(sheet);
    document.title = plot.dataset.name;
    plot.parentNode.classList.add("alone");
    root.classList.add("one-figure");
    alone = { width: width };
    alone.end = function () {
      sheet.remove();
      document.title = title;
      plot.parentNode.classList.remove("alone");
      root.classList.remove("one-figure");
      alone = null;
    };
  }

  function retheme() { label(); if (plots.length && window.Plotly) draw(); }
  function unpack() {
    var holder = document.getElementById("plotly");
    if (!holder) return Promise.resolve();
    var bytes = Uint8Array.from(atob(holder.textContent), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text().then(function (text) {
      var script = document.createElement("script");
      script.textContent = text;
      document.head.appendChild(script);
    });
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
  function save(holder) {
    var table = JSON.parse(holder.querySelector("script").textContent);
    var address = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    download(address, holder.dataset.name + ".csv");
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

  document.querySelectorAll("table.sortable thead button").forEach(function (b) {
    b.addEventListener("click", function () { sortBy(b.closest("th")); });
  });
  document.querySelectorAll("button.csv").forEach(function (b) {
    b.hidden = false;
    b.addEventListener("click", function () { save(b.closest(".table")); });
  });
  document.querySelectorAll("button.copy").forEach(function (b) {
    b.hidden = false;
    b.addEventListener("click", function () { copy(b); });
  });
  plots.concat([].slice.call(document.querySelectorAll(".chart"))).forEach(function (plot) {
    var holder = plot.parentNode, box = holder.querySelector(".switch"), saving = holder.querySelector(".saving");
    if (box) {
      box.hidden = false;
      box.querySelector("select").addEventListener("change", function (e) { plot.dataset.choice = e.target.value; draw([plot]); });
    }
    saving.hidden = false;
    saving.querySelectorAll("button").forEach(function (b) {
      b.addEventListener("click", function () { saveFigure(plot, b.dataset.kind); });
    });
  });
  button.hidden = false;
  button.addEventListener("click", function () { root.dataset.theme = isDark() ? "light" : "dark"; retheme(); });
  wantsDark.addEventListener("change", retheme);
  var before;
  window.addEventListener("beforeprint", function () {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    printing = true;
    document.querySelectorAll("details").forEach(function (d) { d.open = true; });
    retheme();
  });
  window.addEventListener("afterprint", function () {
    printing = false;
    if (alone) alone.end();
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    retheme();
  });
  label();
  var ready = unpack().then(function () {
    retheme();
    root.dataset.drawn = plots.length; // for whoever waits for the page to be whole
  });
  window.manyview = { image: image, leaveOnly: leaveOnly, ready: ready }; // for tests of the page
})();
