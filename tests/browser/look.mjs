// Visits pages of the console in a headless Chromium, and prints what it met as JSON.
//
// In, on standard input:  {base, key, enter: path, pages: {name: path}, flows: {name: {path, script, steps}}, pictures: {name: file} or null,
//                          width, narrow: pixels (1200, 360), ignored: selector of what is not judged, main_only: whether Tab need not reach all}
// Out:                    {entered: path, pages: {name: {...}}, flows: {name: {url, text, live, complaints}}}
//
// A step is {press: key}, {type: text} or {click: selector}; the last two wait for nothing, {wait: selector} does.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']";

const asked = JSON.parse(readFileSync(0, "utf8"));
const VIEW = { width: asked.width ?? 1200, height: 850 };
const browser = await puppeteer.launch({
  args: chromium.args,
  executablePath: process.env.EPOCHAL_CHROMIUM || (await chromium.executablePath()),
  headless: "shell",
  defaultViewport: VIEW,
});
// As somebody opens the address that the command prints: from then on the browser has the key.
const keyed = asked.key ? asked.base.replace("//", `//epochal:${asked.key}@`) : asked.base;
const found = { entered: (await walked({ at: keyed, path: asked.enter, script: true, steps: [] })).url, pages: {}, flows: {} };
for (const [name, path] of Object.entries(asked.pages)) found.pages[name] = await visited(name, path);
for (const [name, flow] of Object.entries(asked.flows)) found.flows[name] = await walked(flow);
await browser.close();
console.log(JSON.stringify(found));

async function opened(path, script = true, at = asked.base) {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (said) => { if (["error", "warn"].includes(said.type())) complaints.push(said.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (sent) => { if (!sent.url().startsWith("data:") && !sent.url().startsWith(asked.base)) complaints.push(`asks ${sent.url()}`); });
  await page.setJavaScriptEnabled(script);
  const answer = await page.goto(at + path);
  return { page, complaints, status: answer.status() };
}

async function visited(name, path) {
  const { page, complaints, status } = await opened(path);
  if (asked.pictures?.[name]) await page.screenshot({ path: asked.pictures?.[name] });
  const text = await textOf(page);
  const reach = asked.main_only ? null : await tabbed(page);
  await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  const axe = {};
  await page.evaluate(AXE);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    axe[scheme] = await page.evaluate(judged, asked.ignored ?? null);
    if (scheme === "dark" && asked.pictures?.[`${name}, dark`]) await page.screenshot({ path: asked.pictures?.[`${name}, dark`] });
  }
  const cut = await page.evaluate(cutOff, asked.ignored ?? null);
  const { overflow, cut: narrowCut } = await narrow(page, asked.pictures?.[`${name}, narrow`]);
  await page.close();
  const plain = await opened(path, false);
  const unscripted = await textOf(plain.page);
  await plain.page.close();
  return { status, complaints: [...complaints, ...plain.complaints], text, unscripted, reach, axe, overflow, cut: [...cut, ...narrowCut] };
}

async function judged(ignored) {
  const { violations } = await axe.run(ignored ? { exclude: [[ignored]] } : document);
  return violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" ")}`);
}

// What Tab does not come to, and what shows no sign that it is where the keyboard is.
async function tabbed(page) {
  const most = await page.evaluate((all) => {
    const visible = [...document.querySelectorAll(all)].filter((each) => each.checkVisibility() && !each.disabled);
    visible.forEach((each, number) => { each.dataset.number = number; });
    document.body.dataset.unseen = "";
    document.addEventListener("focusin", ({ target }) => {
      const { outlineStyle } = getComputedStyle(target);
      if (outlineStyle === "none" && target.dataset.number) document.body.dataset.unseen += `${target.outerHTML}\n`;
      delete target.dataset.number;
    });
    return visible.length;
  }, FOCUSABLE);
  for (let count = 0; count < most; count++) await page.keyboard.press("Tab");
  return page.evaluate(() => ({
    missed: [...document.querySelectorAll("[data-number]")].map((each) => each.outerHTML),
    unseen: document.body.dataset.unseen,
  }));
}

// Pixels that a page is wider than a telephone, and what is cut off there.
async function narrow(page, picture) {
  await page.setViewport({ width: asked.narrow ?? 360, height: 740 });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const cut = await page.evaluate(cutOff, asked.ignored ?? null);
  if (picture) await page.screenshot({ path: picture });
  await page.setViewport(VIEW);
  return { overflow, cut };
}

// What reaches beyond the right edge of the window, and cannot be scrolled to.
function cutOff(ignored) {
  const scrolls = (element) => element && (["auto", "scroll"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  return [...document.querySelectorAll("main *")]
    .filter((element) => !(ignored && element.closest(ignored)))
    .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element.parentElement))
    .map((element) => element.outerHTML.slice(0, 200));
}

// Without what only a page with JavaScript offers, and what is drawn of earlier looks.
function textOf(page) {
  return page.evaluate(() => {
    const main = document.querySelector("main").cloneNode(true);
    main.querySelectorAll(".live, .plot").forEach((each) => each.remove());
    return main.textContent.replace(/\s+/g, " ").trim();
  });
}

async function walked({ path, script, steps, at }) {
  const { page, complaints } = await opened(path, script, at);
  for (const { press, type, click, wait } of steps) {
    if (press) await page.keyboard.press(press);
    if (type) await page.keyboard.type(type);
    if (click) await Promise.all([page.waitForNavigation(), page.click(click)]);
    if (wait) await page.waitForSelector(wait);
  }
  const url = await page.evaluate(() => location.pathname + location.search);
  const live = await page.evaluate(() => document.title.startsWith("●"));
  const text = await textOf(page);
  await page.close();
  return { url, text, live, complaints };
}
