"use strict";

// A canvas of points as a stage of a player; what `points.py` packs is unpacked here.
const pointStage = (() => {
  const PLACES = 0x7fff;
  const FLAG = 0x8000;
  const HALO = 1;
  const TRAIL_OPACITY = 0.65;
  const FULL_WIDTH = 640; // of a stage, where points have the size that was asked for
  const SMALLEST = 0.6; // of that size, on narrow stages

  function bytes(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  return (canvas) => {
    const facts = canvas.dataset;
    const count = Number(facts.frames);
    const points = Number(facts.points);
    const trail = Number(facts.trail);
    const radius = Number(facts.radius);
    const colors = facts.colors.split(",");
    const captions = JSON.parse(facts.captions);
    const packed = new Uint16Array(bytes(facts.packed).buffer);
    const shades = bytes(facts.shades);
    const changing = shades.length > points;
    const context = canvas.getContext("2d");
    let current = 0;

    const isAbsent = (at) => packed[2 * at + 1] & FLAG;
    const x = (at) => ((packed[2 * at] & PLACES) / PLACES) * canvas.width;
    const y = (at) => (1 - packed[2 * at + 1] / PLACES) * canvas.height;

    function byColor(frame) {
      const groups = colors.map(() => []);
      for (let point = 0; point < points; point += 1) {
        const at = frame * points + point;
        groups[shades[changing ? at : point]].push(at);
      }
      return groups;
    }

    function drawTrails(scale) {
      context.lineWidth = radius * scale;
      for (let back = Math.min(trail, current); back > 0; back -= 1) {
        context.globalAlpha = TRAIL_OPACITY * (1 - back / (trail + 1));
        byColor(current - back + 1).forEach((group, color) => {
          context.beginPath();
          for (const at of group) {
            if (isAbsent(at) || isAbsent(at - points) || packed[2 * at] & FLAG) continue;
            context.moveTo(x(at - points), y(at - points));
            context.lineTo(x(at), y(at));
          }
          context.strokeStyle = colors[color];
          context.stroke();
        });
      }
      context.globalAlpha = 1;
    }

    function drawDots(groups, size, colorOf) {
      groups.forEach((group, color) => {
        context.beginPath();
        for (const at of group) {
          if (isAbsent(at)) continue;
          context.moveTo(x(at) + size, y(at));
          context.arc(x(at), y(at), size, 0, 2 * Math.PI);
        }
        context.fillStyle = colorOf(color);
        context.fill();
      });
    }

    function draw() {
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(canvas.clientHeight * ratio);
      const share = canvas.clientWidth / FULL_WIDTH;
      const scale = ratio * Math.min(1, Math.max(SMALLEST, share));
      drawTrails(scale);
      const groups = byColor(current);
      const page = getComputedStyle(document.body).backgroundColor;
      drawDots(groups, (radius + HALO) * scale, () => page);
      drawDots(groups, radius * scale, (color) => colors[color]);
    }

    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

    return {
      count,
      words: (index) => captions[index] ?? "",
      show: (index) => {
        current = index;
        draw();
      },
    };
  };
})();
