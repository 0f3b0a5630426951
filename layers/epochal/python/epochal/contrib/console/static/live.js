// What the pages do beyond being read: keys, and the part marked data-live read again every two seconds. A page that is
// dear to read marks none, and is read again when it is asked for alone.
const EVERY = 2000;
const part = document.querySelector("[data-live]");
const box = document.querySelector("#live");
let live = false;

async function again() {
  if (!part) { location.reload(); return; }
  const answer = await fetch(location.origin + location.pathname + location.search);  // fetch refuses an address with a key in it
  if (!answer.ok) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = found.querySelector("[data-live]");
  if (fresh && fresh.innerHTML !== part.innerHTML && !part.querySelector("details[open]")) part.innerHTML = fresh.innerHTML;
  document.querySelector("footer p").textContent = found.querySelector("footer p").textContent;
}

function toggle(on) {
  live = on && part !== null;
  if (box) box.checked = live;
  document.title = document.title.replace(/^● /, "");
  if (live) document.title = `● ${document.title}`;
}

for (const each of document.querySelectorAll(".keys, label.live")) each.hidden = false;
box?.addEventListener("change", () => toggle(box.checked));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") { event.preventDefault(); document.querySelector("form input")?.focus(); }
  if (event.key === "r") again();
  if (event.key === "l") toggle(!live);
});
setInterval(() => { if (live && !document.hidden) again(); }, EVERY);
