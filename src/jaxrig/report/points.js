"use strict";

// A canvas of points as a stage of a player; what `players.py` packs is unpacked here.
const pointStage = (() => {
  const PLACES = 0x1fff;
  const FLAG = 0x8000;
  const HALO = 1;
  const TRAIL_OPACITY = 0.65;
  const FULL_WIDTH = 640; // of a stage, where points have the size that was asked for
  const SMALLEST = 0.6; // of that size, on narrow stages
  const ROUND = 2; // pixels of radius from which a circle looks unlike a square

  function bytes(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  // Second differences along time, all low bytes before all high ones, zipped.
  async function unpack(text, perFrame) {
    const zipped = new Blob([bytes(text)]).stream();
    const plain = zipped.pipeThrough(new DecompressionStream("deflate"));
    const halves = new Uint8Array(await new Response(plain).arrayBuffer());
    const size = halves.length / 2;
    const values = new Uint16Array(size);
    for (let i = 0; i < size; i += 1) {
      const before = i < perFrame ? 0 : values[i - perFrame];
      const earlier = i < 2 * perFrame ? 0 : values[i - 2 * perFrame];
      values[i] = halves[i] + 256 * halves[size + i] + 2 * before - earlier;
    }
    return values;
  }

  // Between two frames a point follows the cubic through them and their neighbors.
  function cubic(before, from, to, after, share) {
    const bend = 2 * before - 5 * from + 4 * to - after;
    const twist = 3 * (from - to) + after - before;
    return from + 0.5 * share * (to - before + share * (bend + share * twist));
  }

  return async (canvas) => {
    const facts = canvas.dataset;
    const count = Number(facts.frames);
    const points = Number(facts.points);
    const trail = Number(facts.trail);
    const radius = Number(facts.radius);
    const colors = facts.colors.split(",");
    const captions = JSON.parse(facts.captions);
    const packed = await unpack(facts.packed, 2 * points);
    const shades = bytes(facts.shades);
    const changing = shades.length > points;
    const context = canvas.getContext("2d");
    const places = new Float32Array(2 * points); // of this instant, in pixels
    let grouped = [-1, []];
    let current = 0;

    const isAbsent = (at) => packed[2 * at + 1] & FLAG;
    const isStart = (at) => packed[2 * at] & FLAG;
    const x = (at) => ((packed[2 * at] & PLACES) / PLACES) * canvas.width;
    const y = (at) => (1 - (packed[2 * at + 1] & PLACES) / PLACES) * canvas.height;
    const joins = (at) => !isAbsent(at) && !isAbsent(at - points) && !isStart(at);

    function byColor(frame) {
      const key = changing ? frame : 0;
      if (grouped[0] === key) return grouped[1];
      const groups = colors.map(() => []);
      for (let point = 0; point < points; point += 1) {
        groups[shades[key * points + point]].push(point);
      }
      grouped = [key, groups];
      return groups;
    }

    function place(frame, share) {
      for (let point = 0; point < points; point += 1) {
        const at = frame * points + point;
        let [across, down] = [x(at), y(at)];
        const next = at + points;
        if (share > 0 && joins(next)) {
          const before = frame > 0 && joins(at) ? at - points : at;
          const goesOn = frame + 2 < count && joins(next + points);
          const after = goesOn ? next + points : next;
          across = cubic(x(before), across, x(next), x(after), share);
          down = cubic(y(before), down, y(next), y(after), share);
        }
        places[2 * point] = across;
        places[2 * point + 1] = down;
      }
    }

    function drawTrails(frame, share, scale) {
      context.lineWidth = radius * scale;
      for (let back = Math.min(trail, frame); back >= 0; back -= 1) {
        if (back === 0 && share === 0) break;
        context.globalAlpha = TRAIL_OPACITY * (1 - back / (trail + 1));
        byColor(frame).forEach((group, color) => {
          context.beginPath();
          for (const point of group) {
            const to = (frame - back + 1) * points + point;
            if (!joins(to)) continue;
            context.moveTo(x(to - points), y(to - points));
            if (back > 0) context.lineTo(x(to), y(to));
            else context.lineTo(places[2 * point], places[2 * point + 1]);
          }
          context.strokeStyle = colors[color];
          context.stroke();
        });
      }
      context.globalAlpha = 1;
    }

    function drawDots(frame, size, colorOf) {
      byColor(frame).forEach((group, color) => {
        context.beginPath();
        for (const point of group) {
          if (isAbsent(frame * points + point)) continue;
          const [across, down] = [places[2 * point], places[2 * point + 1]];
          if (size < ROUND) {
            context.rect(across - size, down - size, 2 * size, 2 * size);
            continue;
          }
          context.moveTo(across + size, down);
          context.arc(across, down, size, 0, 2 * Math.PI);
        }
        context.fillStyle = colorOf(color);
        context.fill();
      });
    }

    function draw() {
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(canvas.clientHeight * ratio);
      const wide = canvas.clientWidth / FULL_WIDTH;
      const scale = ratio * Math.min(1, Math.max(SMALLEST, wide));
      const frame = Math.floor(current);
      const share = current - frame;
      place(frame, share);
      drawTrails(frame, share, scale);
      const ground = getComputedStyle(canvas.parentElement).backgroundColor;
      // A halo sets points apart; among thousands of small ones it would be a fog.
      if (radius > ROUND) drawDots(frame, (radius + HALO) * scale, () => ground);
      drawDots(frame, radius * scale, (color) => colors[color]);
    }

    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

    return {
      count,
      smooth: true,
      words: (index) => captions[index] ?? "",
      show: (index) => {
        current = index;
        draw();
      },
    };
  };
})();
