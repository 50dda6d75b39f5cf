// An Express server that lets each address through five times in ten seconds. PORT chooses another port than 3000.
import express from 'express'
import { expressRateLimit } from 'sluicegate'

const app = express()
// Before the routes: what is mounted after a route never sees its requests.
app.use(expressRateLimit({ limit: 5, window: '10s' }))

app.get('/', (req, res) => {
  res.json({ hello: 'world', remaining: req.rateLimit.remaining })
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', (error) => {
  if (error) throw error
  const url = `http://127.0.0.1:${server.address().port}`
  console.log(
    `Listening on ${url}: 5 requests per 10 seconds and address. Try six times:\n\n  curl -i ${url}/\n`
  )
})
