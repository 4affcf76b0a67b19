// Charts of error and score against token position, on log-log axes. Everything else on the page is static.
(function () {
  "use strict";
  // From viridis, without its palest end: told apart without colour vision and in print, by lightness.
  const scale = ["#440154", "#472f7d", "#38598c", "#26828e", "#1fa088", "#5ec962", "#b8c41f"];
  const shapes = ["circle", "rect", "triangle", "rectRot", "crossRot", "star"];
  const number = (x) => (typeof x === "number" ? x : x === "inf" ? Infinity : NaN);
  const plottable = (p) => isFinite(p.y) && p.y > 0 && p.x > 0;

  function colour(i, n) {
    const at = n < 2 ? 2 : (i / (n - 1)) * (scale.length - 1);
    return scale[Math.round(at)];
  }
  function exponent(x) {
    return "t^" + x.toFixed(2).replace("-0.00", "0.00");
  }
  function tokens(x) {
    if (x >= 1048576) return x / 1048576 + "M";
    return x >= 1024 ? x / 1024 + "k" : String(x);
  }
  function power(x) {
    return x >= 0.0099 && x <= 1001 ? String(Number(x.toPrecision(3))) : x.toExponential(0).replace("+", "");
  }
  function points(curve, member) {
    return curve.token.map((t, i) => ({ x: t, y: number(curve[member][i]) })).filter(plottable);
  }
  // A power law through (end, y), from `from` to `to`.
  function law(y, end, slope, from, to, cap) {
    const steps = 32, out = [];
    for (let i = 0; i <= steps; i++) {
      const x = from * Math.pow(to / from, i / steps);
      out.push({ x: x, y: Math.min(cap, y * Math.pow(x / end, slope)) });
    }
    return out.filter(plottable);
  }
  function line(label, data, colour, dash, width) {
    return { label: label, data: data, showLine: true, pointRadius: 0, pointStyle: "line", borderColor: colour, borderDash: dash || [], borderWidth: width || 1.5, fill: false };
  }
  function level(label, y, from, to) {
    return line(label, [{ x: from, y: y }, { x: to, y: y }], "#a8320a", [2, 3], 1.2);
  }
  function ranks(chart, member) {
    const n = chart.curves.length;
    return chart.curves.map((curve, i) => ({
      label: n > 1 ? "rank " + curve.rank : member === "error" ? "error" : "score",
      data: points(curve, member), showLine: true, borderWidth: 1.5, pointRadius: 2.2, fill: false,
      pointStyle: shapes[i % shapes.length], borderColor: colour(i, n), backgroundColor: colour(i, n),
    }));
  }
  function shadow(chart) {
    const all = [].concat.apply([], chart.curves.map((c) => points(c, "shadow")));
    return line("shadow (explained)", all.sort((a, b) => a.x - b.x), "#5a6675", [6, 4], 2);
  }
  function draw(id, title, unit, sets, from, to) {
    const canvas = document.getElementById(id);
    if (!canvas) return;
    const ys = [].concat.apply([], sets.map((s) => s.data.map((p) => p.y)));
    if (!ys.length) return;
    const low = Math.min.apply(null, ys), high = Math.max.apply(null, ys);
    // Powers of 4 along the context; 1, 2, 5 of each decade up the side, or the decades alone.
    const octaves = [], sides = [];
    for (let v = 64; v <= to * 1.0001; v *= 4) if (v >= from * 0.9999) octaves.push({ value: v });
    for (let e = Math.floor(Math.log10(low)) - 1; e <= Math.log10(high) + 1; e++)
      (high / low > 60 ? [1] : [1, 2, 5]).forEach((m) => {
        const v = m * Math.pow(10, e);
        if (v >= low / 1.6 && v <= high * 1.6) sides.push({ value: v });
      });
    new Chart(canvas, {
      type: "scatter",
      data: { datasets: sets.filter((s) => s.data.length) },
      options: {
        animation: false, maintainAspectRatio: false, devicePixelRatio: Math.max(2, window.devicePixelRatio || 1),
        plugins: {
          title: { display: true, text: title, color: "#1c2430", font: { size: 13, weight: "600" } },
          legend: { position: "bottom", labels: { usePointStyle: true, boxWidth: 16, boxHeight: 6, padding: 9, color: "#1c2430", font: { size: 11 } } },
          tooltip: { callbacks: { label: (c) => c.dataset.label + ": " + c.parsed.y.toPrecision(3) + " at " + Math.round(c.parsed.x).toLocaleString("en") } },
        },
        scales: {
          x: { type: "logarithmic", min: from, max: to, title: { display: true, text: "token position" },
               afterBuildTicks: (axis) => { axis.ticks = octaves; }, ticks: { callback: tokens, maxRotation: 0 }, grid: { color: "#e8ecf0" } },
          y: { type: "logarithmic", min: low / 1.6, max: high * 1.6, title: { display: true, text: unit },
               afterBuildTicks: (axis) => { axis.ticks = sides; }, ticks: { callback: power }, grid: { color: "#e8ecf0" } },
        },
      },
    });
  }

  const charts = JSON.parse(document.getElementById("charts").textContent);
  if (typeof Chart === "undefined") return;
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  charts.forEach((c) => {
    const starts = [].concat.apply([], c.curves.map((k) => k.token)).filter((t) => t > 0);
    if (!starts.length) return;
    const from = Math.min.apply(null, starts), end = Math.max.apply(null, starts), to = Math.max(c.target, end);

    const errors = ranks(c, "error").concat([shadow(c)]);
    if (c.slope) {
      errors.push(line("fit: " + exponent(c.slope.value), law(c.slope.at_end, c.slope.end, c.slope.value, c.slope.end / 8, c.slope.end, Infinity), "#000", [], 2.4));
      if (c.projected > c.relative)
        errors.push(line("projection to " + tokens(to), law(c.relative, c.slope.end, c.slope.low, c.slope.end, to, Math.max(1, c.relative)), "#000", [3, 4], 1.8));
    }
    errors.push(level("budget", c.budget, from, to));
    draw(c.id + "-error", "Relative error of " + c.tensor + ", head " + c.head, "error / truth", errors, from, to);

    const scores = ranks(c, "score");
    if (c.growth) {
      scores.push(line("growth: " + exponent(c.growth.value), law(c.growth.at_end, c.growth.end, c.growth.value, c.growth.end / 8, c.growth.end, Infinity), "#000", [], 2.4));
      if (c.growth.low > c.growth_limit)
        scores.push(line("projection to " + tokens(to), law(c.growth.at_end, c.growth.end, c.growth.value, c.growth.end, to, Infinity), "#000", [3, 4], 1.8));
    }
    scores.push(level("limit", c.limit, from, to));
    draw(c.id + "-score", "Score of " + c.tensor + ", head " + c.head, "error / shadow", scores, from, to);
  });
  // Closed sections must be on paper too, and canvases fit it.
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((d) => { d.open = true; });
    Object.values(Chart.instances).forEach((c) => c.resize());
  });
})();
