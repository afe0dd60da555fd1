"use strict";

(() => {
  const SPEEDS = [1, 2, 4, 0.25, 0.5];

  function imageStage(frames) {
    let current = 0;
    return {
      count: frames.length,
      words: (index) => frames[index].dataset.caption ?? "",
      show: (index) => {
        frames[current].hidden = true;
        current = index;
        frames[current].hidden = false;
      },
    };
  }

  function connect(player) {
    const canvas = player.querySelector(".stage canvas");
    const images = [...player.querySelectorAll(".stage img")];
    const stage = canvas ? pointStage(canvas) : imageStage(images);
    if (stage.count < 2) return;
    const controls = player.querySelector(".controls");
    const slider = controls.querySelector("input");
    const counter = controls.querySelector(".counter");
    const caption = player.querySelector(".player-caption");
    const toggle = controls.querySelector('[data-action="toggle"]');
    const pace = controls.querySelector('[data-action="speed"]');
    const pause = 1000 / Number(player.dataset.framesPerSecond);
    let current = 0;
    let speed = 0;
    let timer = null;

    function show(index) {
      current = (index + stage.count) % stage.count;
      stage.show(current);
      slider.value = current;
      const count = `${current + 1} / ${stage.count}`;
      const words = stage.words(current);
      counter.textContent = count;
      slider.setAttribute("aria-valuetext", words ? `${count}: ${words}` : count);
      if (caption) caption.textContent = words;
    }

    function setPlaying(playing) {
      clearInterval(timer);
      const wait = pause / SPEEDS[speed];
      timer = playing ? setInterval(() => show(current + 1), wait) : null;
      player.classList.toggle("playing", playing);
      const name = playing ? "Pause" : "Play";
      toggle.setAttribute("aria-label", name);
      toggle.title = `${name} (space)`;
    }

    function halt(index) {
      setPlaying(false);
      show(index);
    }

    function setSpeed(index) {
      speed = index % SPEEDS.length;
      pace.textContent = `${SPEEDS[speed]}\u00d7`;
      pace.setAttribute("aria-label", `Speed ${SPEEDS[speed]}`);
      if (timer !== null) setPlaying(true);
    }

    const actions = {
      previous: () => halt(current - 1),
      toggle: () => setPlaying(timer === null),
      next: () => halt(current + 1),
      speed: () => setSpeed(speed + 1),
    };

    const keys = {
      " ": actions.toggle,
      ArrowLeft: actions.previous,
      ArrowRight: actions.next,
      Home: () => halt(0),
      End: () => halt(stage.count - 1),
    };

    controls.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) actions[button.dataset.action]();
    });

    slider.addEventListener("input", () => halt(Number(slider.value)));

    player.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      // A focused button answers Space itself; the slider answers all but Space.
      const onButton = event.target.closest("button") !== null;
      if (event.key === " " ? onButton : event.target === slider) return;
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      // A held arrow runs through the frames; a held Space must not flicker.
      if (event.key !== " " || !event.repeat) keys[event.key]();
    });

    // The widest count sets the width once, so that the slider does not twitch.
    counter.style.minWidth = `${2 * String(stage.count).length + 3}ch`;
    controls.hidden = false;
    show(0);
  }

  document.querySelectorAll(".player").forEach(connect);
})();
