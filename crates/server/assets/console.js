// What pages can do beyond HTML: times in the reader's own zone, and keys. Everything else works without it.
"use strict";

// The server's clock decides what "ago" means; it need not agree with the reader's.
const serverNow = Date.parse(document.documentElement.dataset.now);
const skew = Number.isNaN(serverNow) ? 0 : serverNow - Date.now();

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const short = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const hour = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

// In one unit or two, as the server says it.
const units = [["days", 86400], ["h", 3600], ["min", 60], ["s", 1]];
function span(seconds) {
  const first = units.findIndex(([, unit]) => seconds >= unit);
  const [name, unit] = units[first];
  const count = Math.floor(seconds / unit);
  const words = `${count} ${name === "days" && count === 1 ? "day" : name}`;
  const next = units[first + 1];
  const rest = next ? Math.floor((seconds % unit) / next[1]) : 0;
  return rest > 0 && count < 10 ? `${words} ${rest} ${next[0]}` : words;
}

function distance(at, now) {
  const seconds = Math.trunc((at - now) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}

function clock(at, now) {
  const isToday = day.format(at) === day.format(now);
  return isToday ? hour.format(at) : full.format(at);
}

const shown = { clock, distance, hour: (at) => short.format(at), said: (at, now, text) => text };
function showTimes() {
  const now = new Date(Date.now() + skew);
  for (const time of document.querySelectorAll("time[data-show]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = shown[time.dataset.show](at, now, time.textContent);
    if (time.textContent !== text) time.textContent = text;
    time.title = `${exact.format(at)} · ${time.dateTime}`;
  }
}

// Whoever writes a time without a zone means their own; the server is told the exact one.
const written = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2})?))?$/;
function sayTimes(form) {
  for (const field of form.querySelectorAll("input[data-time]")) {
    const [, date, hour] = field.value.trim().match(written) ?? [];
    const at = new Date(`${date}T${hour ?? "00:00"}`);
    if (date && !Number.isNaN(at.getTime())) field.value = at.toISOString();
  }
}

function readTimes() {
  const two = (number) => String(number).padStart(2, "0");
  for (const field of document.querySelectorAll("input[data-time]")) {
    const at = new Date(field.value);
    if (!field.value.endsWith("Z") || Number.isNaN(at.getTime())) continue;
    const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
    field.value = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock.replace(/:00$/, "")}`;
  }
}

function moveRow(step) {
  const rows = [...document.querySelectorAll("a.row")];
  if (rows.length === 0) return;
  const here = rows.findIndex((row) => row.closest("tr").contains(document.activeElement));
  const next = here === -1 ? (step > 0 ? 0 : rows.length - 1) : here + step;
  rows[Math.min(Math.max(next, 0), rows.length - 1)].focus();
}

// Whether somebody is in the middle of something: has opened, chosen, marked or pressed something. Whoever only stands on a
// row stands on it still when it has been looked at again.
let isPressing = false;
function isBusy(live) {
  const here = document.activeElement;
  const marked = getSelection();
  const isMarking = marked.type === "Range" && live.contains(marked.anchorNode);
  const isWithin = live.contains(here) && !here.matches("a.row");
  return document.hidden || isPressing || isWithin || isMarking || document.querySelector("details[open], dialog[open], [data-live] :checked:not(option)");
}

function replaceLive(live, next) {
  const here = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const row = [...next.querySelectorAll("a.row")].find((row) => row.getAttribute("href") === here);
  if (here !== null && !row) return false;
  live.replaceWith(next);
  row?.focus({ preventScroll: true });
  showTimes();
  return true;
}

// A part that shows something going on looks again when the server says that something has changed, while somebody looks
// at it and is not in the middle of something. What takes the server long is looked at less often.
let isStale = false;
let isLooking = false;
let restsUntil = 0;
async function lookAgain() {
  isStale = true;
  const live = document.querySelector("[data-live]");
  const begun = performance.now();
  if (!live || isLooking || begun < restsUntil || isBusy(live)) return;
  isLooking = true;
  isStale = false;
  try {
    const answer = await fetch(location.href);
    const isIn = answer.ok && !answer.redirected;
    const page = new DOMParser().parseFromString(isIn ? await answer.text() : "", "text/html");
    const next = page.querySelector("[data-live]");
    if (next && live.isConnected) isStale = isBusy(live) || !replaceLive(live, next);
  } catch {
    // The server is away; what is shown stays, and the next look may find it.
  }
  restsUntil = performance.now() + 4 * (performance.now() - begun);
  isLooking = false;
}

// Only while somebody looks: a browser has few connections to one server.
let stream = null;
function listen() {
  const live = document.querySelector("[data-live]");
  if (!live || document.hidden) {
    stream?.close();
    stream = null;
  } else if (!stream) {
    const id = live.dataset.live;
    stream = new EventSource(id ? `/admin/live?message=${encodeURIComponent(id)}` : "/admin/live");
    stream.addEventListener("changed", lookAgain);
  }
}

// A list without a filter of its own leads to that of all messages.
function toFilter() {
  const filter = document.querySelector("#filter input, #filter [aria-current], #filter a");
  if (filter) filter.focus();
  else if (document.querySelector("nav a")) location.assign("/admin/messages#find");
}

function closeOthers(opened) {
  for (const details of document.querySelectorAll("details.confirm[open]")) {
    if (details !== opened) details.open = false;
  }
}

function press(event) {
  const isWriting = event.target.closest("input, textarea, select");
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = document.getElementById("keys");
  const actions = {
    j: () => moveRow(1),
    k: () => moveRow(-1),
    "/": toFilter,
    "?": () => keys && !keys.open && keys.showModal(),
    Escape: () => {
      document.querySelector("details.confirm[open] > summary")?.focus();
      closeOthers(null);
    },
  };
  const action = actions[event.key];
  if (!action) return;
  if (event.key !== "Escape") event.preventDefault();
  action();
}

// Where the bar is wider than the screen, the page that one is on is seen in it.
function showHere() {
  const here = document.querySelector(".top nav [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - (here.parentElement.clientWidth - here.offsetWidth) / 2;
}
showHere();
addEventListener("resize", showHere);
if (location.hash === "#find") toFilter();
readTimes();
document.getElementById("filter")?.addEventListener("submit", (event) => sayTimes(event.target));
showTimes();
setInterval(showTimes, 1000);
// What came while somebody was in the middle of something is looked at later; so is everything where nobody says anything.
setInterval(() => (isStale || stream?.readyState !== EventSource.OPEN) && lookAgain(), 3000);
addEventListener("load", listen);
// What is pressed must still be there when it is let go, and the click comes after that.
document.addEventListener("pointerdown", () => (isPressing = true));
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => setTimeout(() => (isPressing = false)));
document.addEventListener("visibilitychange", listen);
document.addEventListener("keydown", press);
document.addEventListener("toggle", (event) => event.target.open && event.target.matches("details.confirm") && closeOthers(event.target), true);
document.addEventListener("click", (event) => !event.target.closest("details.confirm") && closeOthers(null));
const showKeys = document.getElementById("show-keys");
if (showKeys) {
  showKeys.hidden = false;
  showKeys.addEventListener("click", () => document.getElementById("keys").showModal());
}
