"use strict";

(() => {
  function connect(player) {
    const frames = [...player.querySelectorAll(".stage img")];
    if (frames.length < 2) return;
    const controls = player.querySelector(".controls");
    const slider = controls.querySelector("input");
    const counter = controls.querySelector(".counter");
    const caption = player.querySelector(".player-caption");
    const toggle = controls.querySelector('[data-action="toggle"]');
    const pause = 1000 / Number(player.dataset.framesPerSecond);
    let current = 0;
    let timer = null;

    function show(index) {
      frames[current].hidden = true;
      current = (index + frames.length) % frames.length;
      frames[current].hidden = false;
      slider.value = current;
      const count = `${current + 1} / ${frames.length}`;
      const words = frames[current].dataset.caption ?? "";
      counter.textContent = count;
      slider.setAttribute("aria-valuetext", words ? `${count}: ${words}` : count);
      if (caption) caption.textContent = words;
    }

    function setPlaying(playing) {
      clearInterval(timer);
      timer = playing ? setInterval(() => show(current + 1), pause) : null;
      player.classList.toggle("playing", playing);
      toggle.setAttribute("aria-label", playing ? "Pause" : "Play");
      toggle.title = playing ? "Pause" : "Play";
    }

    function halt(index) {
      setPlaying(false);
      show(index);
    }

    const actions = {
      previous: () => halt(current - 1),
      toggle: () => setPlaying(timer === null),
      next: () => halt(current + 1),
    };

    const keys = {
      " ": actions.toggle,
      ArrowLeft: actions.previous,
      ArrowRight: actions.next,
      Home: () => halt(0),
      End: () => halt(frames.length - 1),
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
    counter.style.minWidth = `${2 * String(frames.length).length + 3}ch`;
    controls.hidden = false;
    show(0);
  }

  document.querySelectorAll(".player").forEach(connect);
})();
