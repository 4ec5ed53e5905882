// The pictures of "How it works": drawn on a canvas, with no library and no network.
"use strict";

(() => {
  // ---- the stable law ---------------------------------------------------------------------------

  // Chambers, Mallows and Stuck: a draw of SαS(1), which at α = 2 is normal with variance 2.
  function stableDraw(alpha) {
    const v = Math.PI * (Math.random() - 0.5);
    const w = -Math.log(1 - Math.random());
    const head = Math.sin(alpha * v) / Math.pow(Math.cos(v), 1 / alpha);
    return head * Math.pow(Math.cos((1 - alpha) * v) / w, (1 - alpha) / alpha);
  }

  // (1/π) ∫ cos(x t) exp(-t^α) dt, by the trapezoidal rule.
  function stableDensity(x, alpha) {
    const end = Math.pow(36, 1 / alpha), count = 2000, width = end / count;
    let sum = 0.5;
    for (let i = 1; i < count; i++) {
      const t = i * width;
      sum += Math.cos(x * t) * Math.exp(-Math.pow(t, alpha));
    }
    return (sum * width) / Math.PI;
  }

  // ---- the double well of the paper -------------------------------------------------------------

  const potential = (x) => ((x + 5) * (x + 1) * (x - 1.02) * (x - 5)) / 10 + 0.5;
  const slope = (x) => (potential(x + 1e-4) - potential(x - 1e-4)) / 2e-4;

  function logGamma(z) {
    if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - logGamma(1 - z);
    const c = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155,
      0.1208650973866179e-2, -0.5395239384953e-5];
    let sum = 1.000000000190015;
    c.forEach((value, j) => { sum += value / (z + j); });
    const t = z + 4.5;
    return (z - 0.5) * Math.log(t) - t + Math.log(2.5066282746310005 * sum);
  }
  const gamma = (z) => Math.exp(logGamma(z));

  // b(x) = C ∫ [φ(x+u) - φ(x-u)] / φ(x) u^(-α) du; u = s^p removes the singularity at zero.
  function exactDrift(x, alpha) {
    const c = (alpha - 1) / (2 * gamma(2 - alpha) * Math.cos((Math.PI * (2 - alpha)) / 2));
    const p = 1 / (2 - alpha), end = Math.pow(14, 1 / p), count = 1500, width = end / count;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const s = (i + 0.5) * width, u = Math.pow(s, p);
      const part = Math.exp(potential(x) - potential(x + u)) - Math.exp(potential(x) - potential(x - u));
      sum += (part / u) * p; // u^(1-α) du = p ds, as (1-α) p + p - 1 = 0
    }
    return c * sum * width;
  }

  const leadingFactor = (alpha) => gamma(alpha - 1) / Math.pow(gamma(alpha / 2), 2);

  // ---- drawing ----------------------------------------------------------------------------------

  function palette() {
    const dark = document.documentElement.dataset.theme === "dark";
    return dark
      ? { ink: "#e6e6e6", faint: "#555b66", first: "#6cb4ff", second: "#ffb454", third: "#7bd88f" }
      : { ink: "#24292f", faint: "#c9ced6", first: "#0b62c4", second: "#c4570b", third: "#1a7f37" };
  }

  class Plot {
    constructor(canvas, xRange, yRange) {
      this.canvas = canvas;
      this.x = xRange;
      this.y = yRange;
    }
    begin() {
      const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
      this.canvas.width = Math.max(1, box.width * ratio);
      this.canvas.height = Math.max(1, box.height * ratio);
      this.pen = this.canvas.getContext("2d");
      this.pen.scale(ratio, ratio);
      this.size = [box.width, box.height];
      this.pad = { left: 44, right: 18, top: 10, bottom: 26 };
      this.colours = palette();
      this.pen.font = "12px sans-serif";
    }
    px(x) {
      const inner = this.size[0] - this.pad.left - this.pad.right;
      return this.pad.left + (inner * (x - this.x[0])) / (this.x[1] - this.x[0]);
    }
    py(y) {
      const inner = this.size[1] - this.pad.top - this.pad.bottom;
      return this.size[1] - this.pad.bottom - (inner * (y - this.y[0])) / (this.y[1] - this.y[0]);
    }
    axes(xTicks, yTicks) {
      const { pen, colours } = this;
      pen.strokeStyle = colours.faint;
      pen.fillStyle = colours.ink;
      pen.lineWidth = 1;
      pen.textAlign = "center";
      for (const tick of xTicks) {
        this.segment(this.px(tick), this.py(this.y[0]), this.px(tick), this.py(this.y[1]));
        pen.fillText(String(tick).replace("-", "−"), this.px(tick), this.size[1] - 8);
      }
      pen.textAlign = "right";
      for (const [place, name] of yTicks) {
        this.segment(this.px(this.x[0]), this.py(place), this.px(this.x[1]), this.py(place));
        pen.fillText(name.replace("-", "−"), this.pad.left - 6, this.py(place) + 4);
      }
    }
    segment(x0, y0, x1, y1) {
      this.pen.beginPath();
      this.pen.moveTo(x0, y0);
      this.pen.lineTo(x1, y1);
      this.pen.stroke();
    }
    curve(points, colour, width = 2) {
      const { pen } = this;
      pen.save();
      pen.beginPath();
      pen.rect(this.pad.left, this.pad.top, this.size[0] - this.pad.left - this.pad.right,
        this.size[1] - this.pad.top - this.pad.bottom);
      pen.clip();
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      points.forEach(([x, y], i) => (i ? pen.lineTo(this.px(x), this.py(y)) : pen.moveTo(this.px(x), this.py(y))));
      pen.stroke();
      pen.restore();
    }
    legend(entries) {
      const { pen } = this;
      pen.textAlign = "left";
      entries.forEach(([name, colour], i) => {
        const y = this.pad.top + 14 + 17 * i, x = this.pad.left + 10;
        pen.strokeStyle = colour;
        pen.lineWidth = 3;
        this.segment(x, y - 4, x + 18, y - 4);
        pen.fillStyle = this.colours.ink;
        pen.fillText(name, x + 25, y);
      });
    }
  }

  const grid = (from, to, count) =>
    Array.from({ length: count }, (_, i) => from + ((to - from) * i) / (count - 1));

  // ---- the four pictures ------------------------------------------------------------------------

  function densityPicture(root) {
    const plot = new Plot(root.querySelector("canvas"), [-8, 8], [-9, 0]);
    return (alpha) => {
      plot.begin();
      plot.axes([-8, -4, 0, 4, 8], [[-9, "1e-4"], [-6.9, "1e-3"], [-4.6, "0.01"], [-2.3, "0.1"]]);
      const log = (a) => grid(-8, 8, 161).map((x) => [x, Math.log(Math.max(stableDensity(x, a), 1e-9))]);
      plot.curve(log(2), plot.colours.faint, 3);
      plot.curve(log(alpha), plot.colours.first);
      plot.legend([[`α = ${alpha.toFixed(2)}`, plot.colours.first], ["α = 2, the normal law", plot.colours.faint]]);
    };
  }

  function motionPicture(root) {
    const plot = new Plot(root.querySelector("canvas"), [0, 1], [-4, 4]);
    return (alpha) => {
      const count = 600, path = [[0, 0]];
      for (let i = 1; i <= count; i++) {
        path.push([i / count, path[i - 1][1] + Math.pow(1 / count, 1 / alpha) * stableDraw(alpha)]);
      }
      const reach = Math.max(1, ...path.map(([, y]) => Math.abs(y))) * 1.1;
      plot.y = [-reach, reach];
      plot.begin();
      const top = Number(reach.toPrecision(1)) > reach ? Math.floor(reach) : Number(reach.toPrecision(1));
      plot.axes([0, 0.25, 0.5, 0.75, 1], [[-top, String(-top)], [0, "0"], [top, String(top)]]);
      // Steps, not slopes: a jump is drawn as one.
      plot.curve(path.flatMap(([t, y], i) => (i ? [[t, path[i - 1][1]], [t, y]] : [[t, y]])), plot.colours.first, 1.4);
    };
  }

  function chainPicture(root) {
    // At α = 1.7 a hop takes some 3000 steps: in so many a chain without one is rare.
    const count = 20000;
    const plot = new Plot(root.querySelector("canvas"), [0, count], [-6, 7.5]);
    return (alpha) => {
      const eta = 0.02, cap = 0.5, factor = leadingFactor(Math.min(alpha, 2)), points = [];
      let x = -3.6, hops = 0, side = -1;
      for (let n = 0; n <= count; n++) {
        if (n % 5 === 0) points.push([n, x]);
        const drift = -eta * factor * slope(x);
        const noise = alpha >= 2 ? Math.SQRT2 * gaussian() * Math.sqrt(eta) : Math.pow(eta, 1 / alpha) * stableDraw(alpha);
        x += drift / (1 + Math.abs(drift) / cap) + noise;
        if (side * x < -1) { side = -side; hops += 1; }
      }
      plot.begin();
      plot.axes([0, 5000, 10000, 15000, 20000], [[-3.6, "-3.6"], [0, "0"], [3.6, "3.6"]]);
      plot.curve(points, alpha >= 2 ? plot.colours.second : plot.colours.first, 0.9);
      const name = alpha >= 2 ? "ULA (α = 2)" : `FLA, α = ${alpha.toFixed(2)}`;
      plot.legend([[`${name}: ${hops} ${hops === 1 ? "hop" : "hops"} in ${count} steps`, alpha >= 2 ? plot.colours.second : plot.colours.first]]);
    };
  }

  function gaussian() {
    return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  }

  function driftPicture(root) {
    // Signed logarithm: the exact drift is 90 000 on the barrier, and of order one in the wells.
    const squeeze = (b) => Math.sign(b) * Math.log10(1 + Math.abs(b));
    const plot = new Plot(root.querySelector("canvas"), [-5, 5], [-6, 6]);
    return (alpha) => {
      plot.begin();
      plot.axes([-4, -2, 0, 2, 4], [-5, -3, 0, 3, 5].map((k) => [k, k === 0 ? "0" : `${k < 0 ? "-" : ""}1e${Math.abs(k)}`]));
      const xs = grid(-5, 5, 241), c = leadingFactor(Math.min(alpha, 2));
      const used = Math.min(alpha, 1.99);
      plot.curve(xs.map((x) => [x, squeeze(exactDrift(x, used))]), plot.colours.first);
      plot.curve(xs.map((x) => [x, squeeze(-c * slope(x))]), plot.colours.second);
      plot.legend([[`exact drift b, α = ${used.toFixed(2)}`, plot.colours.first], ["leading term b̂ = −c ∇U", plot.colours.second]]);
    };
  }

  const PICTURES = { density: densityPicture, motion: motionPicture, chain: chainPicture, drift: driftPicture };

  function start(root) {
    const draw = PICTURES[root.dataset.picture](root);
    const slider = root.querySelector("input"), shown = root.querySelector("output");
    const again = root.querySelector("button");
    const update = () => {
      const alpha = Number(slider.value);
      shown.textContent = alpha.toFixed(2);
      draw(alpha);
    };
    slider.addEventListener("input", update);
    if (again) again.addEventListener("click", update);
    window.addEventListener("resize", update);
    new MutationObserver(update).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    update();
  }

  const all = () => document.querySelectorAll("[data-picture]").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
