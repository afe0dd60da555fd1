"use strict";

(() => {
  const SPEEDS = [1, 2, 4, 0.25, 0.5];

  function imageStage(frames, first) {
    let current = first;
    return {
      count: frames.length,
      smooth: false,
      words: (index) => frames[index].dataset.caption ?? "",
      show: (index) => {
        frames[current].hidden = true;
        current = index;
        frames[current].hidden = false;
      },
    };
  }

  async function connect(player) {
    const first = Number(player.dataset.first);
    const canvas = player.querySelector(".stage canvas");
    const images = [...player.querySelectorAll(".stage img")];
    const stage = canvas ? await pointStage(canvas) : imageStage(images, first);
    if (stage.count < 2) return;
    const controls = player.querySelector(".controls");
    const slider = controls.querySelector("input");
    const counter = controls.querySelector(".counter");
    const caption = player.querySelector(".player-caption");
    const toggle = controls.querySelector('[data-action="toggle"]');
    const pace = controls.querySelector('[data-action="speed"]');
    const pause = 1000 / Number(player.dataset.framesPerSecond);
    const last = stage.count - 1;
    const loops = "loop" in player.dataset;
    let current = first;
    let speed = 0;
    let playing = false;
    let drawing = 0; // the request for the next frame of the animation
    let then = 0; // when the last frame of the animation was drawn

    function show(place) {
      current = place;
      const frame = Math.floor(place);
      stage.show(stage.smooth ? place : frame);
      slider.value = frame;
      const count = `${frame + 1} / ${stage.count}`;
      const words = stage.words(frame);
      counter.textContent = count;
      slider.setAttribute("aria-valuetext", words ? `${count}: ${words}` : count);
      if (caption) caption.textContent = words;
    }

    function advance(now) {
      // The clock of frames may lag a little behind the one read when play began.
      const passed = Math.max(0, now - then);
      const place = current + (passed * SPEEDS[speed]) / pause;
      then = now;
      if (place < last || (loops && !stage.smooth && place < stage.count)) show(place);
      else if (loops) show(0);
      else return halt(last);
      drawing = requestAnimationFrame(advance);
    }

    function setPlaying(wanted) {
      cancelAnimationFrame(drawing);
      playing = wanted;
      if (playing) {
        if (current >= last) show(0);
        then = performance.now();
        drawing = requestAnimationFrame(advance);
      }
      player.classList.toggle("playing", playing);
      const name = playing ? "Pause" : "Play";
      toggle.setAttribute("aria-label", name);
      toggle.title = `${name} (space)`;
    }

    function halt(index) {
      setPlaying(false);
      show((index + stage.count) % stage.count);
    }

    function setSpeed(index) {
      speed = index % SPEEDS.length;
      pace.textContent = `${SPEEDS[speed]}\u00d7`;
      pace.setAttribute("aria-label", `Speed ${SPEEDS[speed]}`);
    }

    // Plays while in view, until the visitor takes over.
    const inView = new IntersectionObserver((entries) => {
      const seen = entries[entries.length - 1].isIntersecting;
      if (seen && !loops) takeOver();
      setPlaying(seen);
    });
    const takeOver = () => inView.disconnect();

    const actions = {
      previous: () => halt(Math.ceil(current) - 1),
      toggle: () => setPlaying(!playing),
      next: () => halt(Math.floor(current) + 1),
      speed: () => setSpeed(speed + 1),
    };

    const keys = {
      " ": actions.toggle,
      ArrowLeft: actions.previous,
      ArrowRight: actions.next,
      Home: () => halt(0),
      End: () => halt(last),
    };

    controls.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      takeOver();
      actions[button.dataset.action]();
    });

    slider.addEventListener("input", () => {
      takeOver();
      halt(Number(slider.value));
    });

    player.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      // A focused button answers Space itself; the slider answers all but Space.
      const onButton = event.target.closest("button") !== null;
      if (event.key === " " ? onButton : event.target === slider) return;
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      takeOver();
      // A held arrow runs through the frames; a held Space must not flicker.
      if (event.key !== " " || !event.repeat) keys[event.key]();
    });

    // The widest count sets the width once, so that the slider does not twitch.
    counter.style.minWidth = `${2 * String(stage.count).length + 3}ch`;
    controls.hidden = false;
    show(first);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if ("autoplay" in player.dataset && !still) inView.observe(player);
  }

  document.querySelectorAll(".player").forEach(connect);
})();
