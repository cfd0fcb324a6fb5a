// The course of the run: a chart, and a moment of it that the pointer or the slider chooses.

class Timeline {
  constructor(report) {
    this.report = report;
    this.course = report.course;
    this.chart = makeChart("timeline", "Allocated bytes over the run, by category; the slider below tells each moment");
    this.slider = byId("moment");
    this.slider.addEventListener("input", () => this.look(Number(this.slider.value), true));
    this.chart.on("updateAxisPointer", (event) => this.follow(event));
    this.buttons = [...document.querySelectorAll("[data-part]")];
    for (const button of this.buttons) button.addEventListener("click", () => this.zoom(button));
    this.offerScale();
    onTheme(() => this.draw());
    this.draw();
    this.look(partAt(this.course, this.course.peak_tick));
  }

  draw() {
    this.chart.setOption(timelineOption(this.report, themeColors(), this.toCard));
  }

  /** A run that takes little of the card is drawn in its own scale, until the person wants the other. */
  offerScale() {
    const button = byId("scale");
    this.toCard = !isLittle(this.report);
    button.hidden = this.toCard;
    button.addEventListener("click", () => {
      this.toCard = !this.toCard;
      button.setAttribute("aria-pressed", String(this.toCard));
      this.draw();
    });
  }

  /** The pointer is over the part whose tick is nearest. */
  follow(event) {
    const at = event.dataIndex;
    if (at !== undefined) this.look(at);
  }

  /** Show the part `at`; with `point` the chart points to it as well. */
  look(at, point = false) {
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", `${formatBytes(this.course.allocated_bytes[at])}, ${momentOf(this.course.steps[at], this.course.phases[at])}`);
    showInstant(this.report, at);
    if (point) this.chart.dispatchAction({ type: "showTip", seriesIndex: 1, dataIndex: at });
  }

  /** The whole run, or the step of the peak and what is around it. */
  zoom(button) {
    press(this.buttons, button);
    const { ticks, spans, peak_tick: peak } = this.course;
    const step = spans.find((span) => span.first_tick <= peak && peak <= span.last_tick)?.step;
    const inside = spans.filter((span) => button.dataset.part === "all" || span.step === step);
    const [startValue, endValue] = [inside[0]?.first_tick ?? ticks[0], inside[inside.length - 1]?.last_tick ?? ticks[ticks.length - 1]];
    const whole = button.dataset.part === "all";
    this.chart.dispatchAction(whole ? { type: "dataZoom", start: 0, end: 100 } : { type: "dataZoom", startValue, endValue });
  }
}
