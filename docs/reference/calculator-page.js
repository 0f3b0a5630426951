// Shows what calculator.mjs finds, whenever a field of the page changes.
import { bill, SERVICES, total } from "./calculator.mjs";

const form = document.getElementById("asked");

function show() {
  const texts = ["door", "kept", "service"];
  const asked = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, texts.includes(name) ? value : Number(value)]));
  const found = bill(asked);
  document.getElementById("found").replaceChildren(...Object.entries(found).map(([name, dollars]) => {
    const row = document.createElement("tr");
    for (const text of [name, dollars.toFixed(2)]) row.append(Object.assign(document.createElement("td"), { textContent: text }));
    return row;
  }));
  document.getElementById("total").textContent = total(found).toFixed(2);
}

form.addEventListener("input", ({ target }) => {
  const service = target.name === "service" && target.value;
  if (service) {
    form.reset();
    for (const [name, value] of Object.entries({ ...SERVICES[service], service })) form.elements[name].value = value;
  }
  show();
});
show();
