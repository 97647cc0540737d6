/* What check_browser.py asks of a page: text that is too pale, and what is wider than the page. */
globalThis.cai_ask = (() => {
  /* "rgb(1, 2, 3)" or "rgba(1, 2, 3, 0.5)" */
  function colour(text) {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    return { parts: [red, green, blue], alpha };
  }

  function over(front, back) {
    return front.parts.map((part, i) => part * front.alpha + back[i] * (1 - front.alpha));
  }

  function background(element) {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const layer = colour(getComputedStyle(each).backgroundColor);
      if (layer.alpha > 0) layers.push(layer);
      if (layer.alpha === 1) break;
    }
    return layers.reverse().reduce((back, layer) => over(layer, back), [255, 255, 255]);
  }

  function luminance(parts) {
    const [red, green, blue] = parts.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function ratio(element) {
    const back = background(element);
    const front = over(colour(getComputedStyle(element).color), back);
    const [low, high] = [luminance(front), luminance(back)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  /* The limits of WCAG 2.2, level AA */
  function limit(style) {
    const size = parseFloat(style.fontSize);
    return size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  }

  function has_text(element) {
    return [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  }

  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const name = (element) => `${element.tagName.toLowerCase()}.${[...element.classList].join(".")}`;

  function pale() {
    const texts = [...document.body.querySelectorAll("*")].filter((each) => has_text(each) && seen(each));
    const found = texts.map((each) => ({ each, has: ratio(each), needs: limit(getComputedStyle(each)) }));
    const wrong = found.filter(({ has, needs }) => has < needs)
      .map(({ each, has }) => `${name(each)} has ${has.toFixed(2)}: ${each.textContent.trim().slice(0, 30)}`);
    return { count: texts.length, least: Math.min(...found.map(({ has }) => has)), wrong: wrong.slice(0, 8) };
  }

  /* Elements that stick out to the right, unless they scroll within another one */
  function wide() {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const out = [...document.body.querySelectorAll("*")]
      .filter((each) => seen(each) && each.getBoundingClientRect().right > clientWidth + 1);
    return [`${scrollWidth} of ${clientWidth}`, ...out.slice(0, 5).map(name)];
  }

  return { pale, wide };
})();
