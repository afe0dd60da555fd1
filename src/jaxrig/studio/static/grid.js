// ARC grids on a 2-D canvas, in the colors the community knows.
import { color } from "/static/shell.js";

export const COLORS = ["#000000", "#0074D9", "#FF4136", "#2ECC40", "#FFDC00", "#AAAAAA", "#F012BE", "#FF851B", "#7FDBFF", "#870C25"];
export const NAMES = ["black", "blue", "red", "green", "yellow", "gray", "magenta", "orange", "azure", "maroon"];

export const shape = (rows) => [rows.length, rows[0].length];
export function cellSize(rows, width, height, most = 40) {
  const [tall, wide] = shape(rows);
  return Math.max(2, Math.min(most, Math.floor((width - 1) / wide), Math.floor((height - 1) / tall)));
}

// Draw rows of digits with cells of some pixels; `more` may mark cells and boxes.
export function drawGrid(canvas, rows, cell, more = {}) {
  const [tall, wide] = shape(rows);
  const sharp = devicePixelRatio || 1;
  const line = cell >= 5 ? 1 : 0;
  canvas.width = (wide * cell + line) * sharp;
  canvas.height = (tall * cell + line) * sharp;
  canvas.style.width = `${wide * cell + line}px`;
  canvas.style.height = `${tall * cell + line}px`;
  const draw = canvas.getContext("2d");
  draw.scale(sharp, sharp);
  draw.fillStyle = line ? color("grid-line") : COLORS[0];
  draw.fillRect(0, 0, wide * cell + line, tall * cell + line);
  rows.forEach((row, y) => [...row].forEach((digit, x) => {
    draw.fillStyle = COLORS[digit];
    draw.fillRect(x * cell + line, y * cell + line, cell - line, cell - line);
  }));
  for (const [y, x] of more.wrong ?? []) cross(draw, x * cell, y * cell, cell);
  if (more.box) outline(draw, more.box, cell, "#ffffff", "#000000", []);
  if (more.cursor) outline(draw, [...more.cursor, ...more.cursor], cell, "#ffffff", "#000000", [3, 3]);
  return canvas;
}
function outline(draw, [top, left, bottom, right], cell, light, shade, dash) {
  const box = [Math.min(left, right) * cell + 1.5, Math.min(top, bottom) * cell + 1.5, (Math.abs(right - left) + 1) * cell - 2, (Math.abs(bottom - top) + 1) * cell - 2];
  draw.lineWidth = 4;
  draw.setLineDash([]);
  draw.strokeStyle = shade;
  draw.strokeRect(...box);
  draw.lineWidth = 2;
  draw.setLineDash(dash);
  draw.strokeStyle = light;
  draw.strokeRect(...box);
  draw.setLineDash([]);
}
// A cross, so that color is not the only sign of a wrong cell.
function cross(draw, x, y, cell) {
  for (const [width, ink] of [[4, "#000"], [2, "#fff"]]) {
    draw.lineWidth = width;
    draw.strokeStyle = ink;
    draw.beginPath();
    draw.moveTo(x + cell * 0.25, y + cell * 0.25);
    draw.lineTo(x + cell * 0.75, y + cell * 0.75);
    draw.moveTo(x + cell * 0.75, y + cell * 0.25);
    draw.lineTo(x + cell * 0.25, y + cell * 0.75);
    draw.stroke();
  }
}
// Two grids side by side with an arrow, for cards.
export function drawPair(canvas, [given, wanted], width = 128, height = 68) {
  const sharp = devicePixelRatio || 1;
  canvas.width = width * sharp;
  canvas.height = height * sharp;
  const draw = canvas.getContext("2d");
  draw.scale(sharp, sharp);
  const room = (width - 16) / 2;
  [given, wanted].forEach((rows, at) => {
    if (!rows) return;
    const [tall, wide] = shape(rows);
    const cell = Math.min(room / wide, height / tall, 14);
    const left = at * (room + 16) + (room - wide * cell) / 2, top = (height - tall * cell) / 2;
    rows.forEach((row, y) => [...row].forEach((digit, x) => {
      draw.fillStyle = COLORS[digit];
      draw.fillRect(left + x * cell, top + y * cell, cell + 0.3, cell + 0.3);
    }));
    draw.strokeStyle = color("grid-line");
    draw.strokeRect(left, top, wide * cell, tall * cell);
  });
  draw.fillStyle = color("soft");
  draw.font = "12px system-ui";
  draw.textAlign = "center";
  draw.fillText("→", width / 2, height / 2 + 4);
}
