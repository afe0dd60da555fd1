// Particles on a canvas: WebGL2 where there is, else a plain 2-D drawing.
//
// A frame is 16-bit coordinates of every particle between two corners. All frames lie in
// one buffer of the graphics card, which also interpolates between them: the processor
// does nothing per particle, and a tenth of the frames would do.

const GONE = 65535;
// viridis (van der Walt and Smith, 2015), nine colors
export const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
// cividis (Nuñez, Anderton and Renslow, 2018)
export const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#fee838"];
export const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
export function ramp(map, share) {
  const at = Math.max(0, Math.min(1, share)) * (map.length - 1), low = Math.min(map.length - 2, Math.floor(at));
  const [one, other] = [rgb(map[low]), rgb(map[low + 1])];
  return one.map((value, k) => value + (at - low) * (other[k] - value));
}

const POINTS = `#version 300 es
in vec3 a; in vec3 b; in float tint, later;
uniform float share, dot, tinted; uniform vec3 center, metric; uniform mat3 turn; uniform vec2 fit, shift;
out float speed;
void main() {
  bool gone = max(a.x, b.x) > 0.999992;
  vec3 step = b - a;
  if (max(max(abs(step.x), abs(step.y)), abs(step.z)) > 0.4) step = vec3(0.0); // came in at the other side
  speed = tinted < 0.5 ? length(step * metric) : max(tint, later) > 0.999992 ? -1.0 : mix(tint, later, share);
  vec3 seen = turn * (a + share * step - center);
  gl_Position = gone ? vec4(3.0, 3.0, 0.0, 1.0) : vec4(seen.xy * fit + shift, 0.0, 1.0);
  gl_PointSize = dot;
}`;
const INK = `#version 300 es
precision highp float;
in float speed; uniform vec3 colors[9]; uniform float plain; out vec4 ink;
void main() {
  float at = clamp(speed, 0.0, 1.0) * 8.0; int low = min(7, int(at));
  vec3 color = mix(speed < 0.0 ? vec3(0.5) : mix(colors[low], colors[low + 1], at - float(low)), vec3(1.0), plain);
  float far = length(gl_PointCoord - 0.5); float alpha = smoothstep(0.5, 0.3, far);
  ink = vec4(color * alpha, alpha);
}`;
const SHEET = `#version 300 es
out vec2 at; void main() { at = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2); gl_Position = vec4(at * 2.0 - 1.0, 0.0, 1.0); }`;
const FADE = `#version 300 es
precision highp float;
in vec2 at; uniform sampler2D before; uniform float keep; out vec4 ink;
void main() { ink = max(texture(before, at) * keep - (keep < 1.0 ? 0.004 : 0.0), 0.0); }`; // minus a level, or ghosts stay

export function particles(canvas, slow = false) {
  const gl = slow ? null : canvas.getContext("webgl2", { premultipliedAlpha: true, antialias: false });
  return gl ? new Drawn(canvas, gl) : new Plain(canvas);
}

class Drawn {
  kind = "WebGL";
  constructor(canvas, gl) {
    Object.assign(this, { canvas, gl, frames: 0, count: 0, dims: 2 });
    this.points = program(gl, POINTS, INK);
    this.fade = program(gl, SHEET, FADE);
    this.sheets = [gl.createTexture(), gl.createTexture()];
    this.target = gl.createFramebuffer();
    this.empty = gl.createVertexArray();
    this.array = gl.createVertexArray();
  }
  // With `tinted`, a frame ends with a value of every particle to color it by.
  start(count, dims, frames, tinted = false) {
    const { gl } = this;
    Object.assign(this, { count, dims, frames: 0, tinted, bytes: count * (dims + tinted) * 2 });
    if (this.buffer) gl.deleteBuffer(this.buffer);
    this.buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, Math.max(1, frames) * this.bytes, gl.STATIC_DRAW);
    this.clear();
  }
  add(frame) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, this.frames * this.bytes, new Uint8Array(frame));
    this.frames += 1;
  }
  size() {
    const { gl, canvas } = this;
    const sharp = Math.min(2, devicePixelRatio || 1), [wide, tall] = [canvas.clientWidth * sharp, canvas.clientHeight * sharp].map(Math.round);
    if (canvas.width === wide && canvas.height === tall && this.sized) return;
    Object.assign(canvas, { width: Math.max(1, wide), height: Math.max(1, tall) });
    this.sized = true;
    for (const sheet of this.sheets) {
      gl.bindTexture(gl.TEXTURE_2D, sheet);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, canvas.width, canvas.height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
      for (const [name, value] of [["MIN_FILTER", "NEAREST"], ["MAG_FILTER", "NEAREST"], ["WRAP_S", "CLAMP_TO_EDGE"], ["WRAP_T", "CLAMP_TO_EDGE"]]) gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}`], gl[value]);
    }
    this.clear();
  }
  clear() {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    for (const sheet of this.sheets) {
      if (!this.sized) continue;
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, sheet, 0);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
  // Draw one moment over what is left of those before.
  draw(time, view, trail = true, show = true) {
    const { gl, canvas } = this;
    this.size();
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.sheets[1], 0);
    gl.disable(gl.BLEND);
    this.sheet(this.sheets[0], trail ? (view.plain ? 0.7 : this.count > 20000 ? 0.82 : 0.93) : 0); // many trails would cover everything
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    if (this.frames) this.dots(time, view);
    this.sheets.reverse();
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    if (!show) return;
    gl.disable(gl.BLEND);
    this.sheet(this.sheets[0], 1);
  }
  sheet(texture, keep) {
    const { gl } = this;
    gl.useProgram(this.fade.made);
    gl.bindVertexArray(this.empty);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.uniform1f(this.fade.keep, keep);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }
  dots(time, view) {
    const { gl, points, count, dims } = this;
    const first = Math.max(0, Math.min(this.frames - 2, Math.floor(time))), next = Math.min(this.frames - 1, first + 1);
    gl.useProgram(points.made);
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    [[points.a, first], [points.b, next]].forEach(([place, frame]) => {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, dims, gl.UNSIGNED_SHORT, true, dims * 2, frame * this.bytes);
    });
    [[points.tint, first], [points.later, next]].forEach(([place, frame]) => {
      if (!this.tinted) return gl.disableVertexAttribArray(place);
      gl.enableVertexAttribArray(place);
      return gl.vertexAttribPointer(place, 1, gl.UNSIGNED_SHORT, true, 2, frame * this.bytes + count * dims * 2);
    });
    gl.uniform1f(points.tinted, this.tinted ? 1 : 0);
    gl.uniform1f(points.share, time - first);
    gl.uniform1f(points.dot, view.dot * Math.min(2, devicePixelRatio || 1));
    gl.uniform3fv(points.center, view.center);
    gl.uniform3fv(points.metric, view.metric);
    gl.uniformMatrix3fv(points.turn, false, view.turn);
    gl.uniform2fv(points.fit, view.fit);
    gl.uniform2fv(points.shift, view.shift);
    gl.uniform1f(points.plain, view.plain ? 1 : 0);
    gl.uniform3fv(points.colors, VIRIDIS.flatMap((hex) => rgb(hex).map((value) => value / 255)));
    gl.drawArrays(gl.POINTS, 0, count);
  }
}
function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  const places = { made, a: gl.getAttribLocation(made, "a"), b: gl.getAttribLocation(made, "b"), tint: gl.getAttribLocation(made, "tint"), later: gl.getAttribLocation(made, "later") };
  for (const name of ["share", "dot", "tinted", "center", "metric", "turn", "fit", "shift", "plain", "colors", "keep"]) places[name] = gl.getUniformLocation(made, name);
  return places;
}

// The same without a graphics card: fewer particles, said in the corner.
class Plain {
  kind = "2-D canvas";
  constructor(canvas) {
    Object.assign(this, { canvas, ink: canvas.getContext("2d"), list: [], frames: 0, count: 0, dims: 2 });
    this.most = 8000;
  }
  start(count, dims, frames, tinted = false) { Object.assign(this, { count, dims, tinted, list: [], frames: 0 }); this.clear(); }
  add(frame) { this.list.push(new Uint16Array(frame)); this.frames += 1; }
  clear() { this.ink.clearRect(0, 0, this.canvas.width, this.canvas.height); }
  draw(time, view, trail = true) {
    const { canvas, ink, dims } = this;
    if (canvas.width !== canvas.clientWidth || canvas.height !== canvas.clientHeight) Object.assign(canvas, { width: Math.max(1, canvas.clientWidth), height: Math.max(1, canvas.clientHeight) });
    ink.globalCompositeOperation = "destination-out";
    ink.fillStyle = `rgba(0,0,0,${trail ? 0.1 : 1})`;
    ink.fillRect(0, 0, canvas.width, canvas.height);
    ink.globalCompositeOperation = "source-over";
    if (!this.frames) return;
    const first = Math.max(0, Math.min(this.frames - 2, Math.floor(time))), share = time - first;
    const [one, other] = [this.list[first], this.list[Math.min(this.frames - 1, first + 1)]];
    const every = Math.max(1, Math.ceil(this.count / this.most)), { turn, center, metric, fit, shift } = view;
    for (let k = 0; k < this.count; k += every) {
      if (one[k * dims] === GONE || other[k * dims] === GONE) continue;
      const step = [0, 0, 0], at = [0, 0, 0];
      for (let c = 0; c < dims; c += 1) {
        step[c] = (other[k * dims + c] - one[k * dims + c]) / 65535;
        if (Math.abs(step[c]) > 0.4) step.fill(0);
      }
      for (let c = 0; c < dims; c += 1) at[c] = one[k * dims + c] / 65535 + share * step[c] - center[c];
      const x = (turn[0] * at[0] + turn[3] * at[1] + turn[6] * at[2]) * fit[0] + shift[0], y = (turn[1] * at[0] + turn[4] * at[1] + turn[7] * at[2]) * fit[1] + shift[1];
      const tint = one[this.count * dims + k];
      const speed = this.tinted ? tint / 65535 : Math.hypot(step[0] * metric[0], step[1] * metric[1], step[2] * metric[2]);
      ink.fillStyle = view.plain ? "#fff" : this.tinted && tint === GONE ? "#808080" : VIRIDIS[Math.min(8, Math.floor(speed * 9))];
      ink.fillRect(((x + 1) / 2) * canvas.width - 1, ((1 - y) / 2) * canvas.height - 1, 2, 2);
    }
  }
}
